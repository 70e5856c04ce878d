// A picture to read: dropped, chosen or pasted, and made smaller here, so that a photo is sent in no time.

import { element } from "./dom.js";

/** Pixels of the longer side of a picture that is sent. */
const LONGEST = 1000;

/** What a server reads as it is; other pictures are made PNG first. */
const READ = ["image/png", "image/jpeg"];

/** A field of a run that reads a picture. */
export function pictureField(run, { onchange }) {
  const file = element("input", { type: "file", accept: "image/*", class: "unseen", tabindex: -1, "aria-hidden": true });
  const shown = element("div", { class: "picture-shown" });
  const said = element("p", { class: "picture-said", role: "status" });
  const choose = element("button", { type: "button", onclick: () => file.click() }, "Choose a picture");
  const about = element("p", { class: "picture-about" }, choose, element("span", {}, " or drop or paste one here"));
  const node = element("div", { class: "picture-field", role: "group", "aria-label": "Input, a picture" }, shown, about, file, said);
  let value = null;

  async function take(found) {
    if (!found) return;
    try {
      value = await sendable(found);
      said.textContent = "";
      show();
      onchange();
    } catch {
      said.textContent = `${found.name || "This"} is no picture that this browser can show.`;
    }
  }

  function show() {
    node.classList.toggle("given", value !== null);
    if (value === null) return shown.replaceChildren();
    const image = element("img", { src: value, alt: "The picture that is read" });
    image.addEventListener("load", () => {
      image.title = `${image.naturalWidth} × ${image.naturalHeight} pixels`;
      // Few pixels are shown as such, not blurred.
      image.classList.toggle("tiny", image.naturalWidth < 200);
    });
    return shown.replaceChildren(image);
  }

  file.addEventListener("change", () => {
    take(file.files[0]);
    file.value = ""; // the same file may be chosen again
  });
  for (const kind of ["dragenter", "dragover"]) {
    node.addEventListener(kind, (event) => {
      event.preventDefault();
      node.classList.add("dragged");
    });
  }
  node.addEventListener("dragleave", (event) => node.contains(event.relatedTarget) || node.classList.remove("dragged"));
  node.addEventListener("drop", (event) => {
    event.preventDefault();
    node.classList.remove("dragged");
    take(event.dataTransfer.files[0]);
  });
  document.addEventListener("paste", function pasted(event) {
    if (!node.isConnected && node.dataset.seen) return document.removeEventListener("paste", pasted);
    node.dataset.seen = node.isConnected || "";
    const isElsewhere = event.target.closest?.("input, textarea") && !node.contains(event.target);
    const found = [...event.clipboardData.files].find((each) => each.type.startsWith("image/"));
    if (found && !isElsewhere && node.isConnected) take(found);
    return undefined;
  });

  return {
    node,
    get value() {
      return value;
    },
    set value(given) {
      value = typeof given === "string" ? given : given && drawn(given);
      show();
    },
    label: () => "a picture",
    preview: (of) => element("img", { class: "preview", src: typeof of === "string" ? of : drawn(of), alt: "" }),
  };
}

/** The data URL of a picture's file: as it is where that is small and of a kind that is read, else drawn anew. */
async function sendable(file) {
  const image = await createImageBitmap(file);
  const share = Math.min(1, LONGEST / Math.max(image.width, image.height));
  if (share === 1 && READ.includes(file.type)) return asURL(file);
  const canvas = element("canvas", { width: Math.round(image.width * share), height: Math.round(image.height * share) });
  const pen = canvas.getContext("2d");
  pen.fillStyle = "white"; // what is transparent shows paper
  pen.fillRect(0, 0, canvas.width, canvas.height);
  pen.imageSmoothingQuality = "high";
  pen.drawImage(image, 0, 0, canvas.width, canvas.height);
  return canvas.toDataURL(file.type === "image/jpeg" ? "image/jpeg" : "image/png", 0.92);
}

function asURL(file) {
  return new Promise((resolve, reject) => {
    const reader = new FileReader();
    reader.addEventListener("load", () => resolve(reader.result));
    reader.addEventListener("error", () => reject(reader.error));
    reader.readAsDataURL(file);
  });
}

/** Pixels that are lists of numbers, as a picture. */
function drawn(rows) {
  const canvas = element("canvas", { width: rows[0].length, height: rows.length });
  const pen = canvas.getContext("2d");
  const pixels = pen.createImageData(canvas.width, canvas.height);
  const most = rows.flat(2).some((each) => each > 1) ? 255 : 1;
  rows.flat().forEach((pixel, place) => {
    const channels = Array.isArray(pixel) ? pixel : [pixel];
    for (let channel = 0; channel < 3; channel++) {
      pixels.data[4 * place + channel] = (255 / most) * (channels[channel] ?? channels[0]);
    }
    pixels.data[4 * place + 3] = 255;
  });
  pen.putImageData(pixels, 0, 0);
  return canvas.toDataURL();
}
