"""What `vllm` is started with."""
