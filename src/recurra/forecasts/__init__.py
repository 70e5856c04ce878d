"""What forecasting is made of: how series are scaled and answered, intervals, backtests, anomalies, streams, views."""
