# A server of exported models, without torch; docs/deploy.md says how to run it.
FROM python:3.12-slim AS build
RUN pip install --no-cache-dir "hatchling>=1.26"
COPY . /source
RUN pip wheel --no-cache-dir --no-deps --no-build-isolation --wheel-dir /wheels /source/run

FROM python:3.12-slim
# The compiler is for models that C answers, several times as fast as NumPy.
RUN apt-get update && apt-get install -y --no-install-recommends gcc libc6-dev && rm -rf /var/lib/apt/lists/*
COPY --from=build /wheels /wheels
RUN pip install --no-cache-dir --find-links /wheels "recurra-run[serve,subwords]" && rm -r /wheels
RUN useradd --create-home recurra
USER recurra
EXPOSE 8642
HEALTHCHECK --interval=10s --timeout=3s --start-period=60s \
  CMD ["python", "-c", "import urllib.request; urllib.request.urlopen('http://127.0.0.1:8642/health', timeout=2)"]
# The token is in the variable RECURRA_TOKEN; without one the server does not start.
CMD ["recurra", "serve", "/models", "--host", "0.0.0.0", "--allow-host", "*", "--access-log", "-", "--reload", "--grace", "20"]
