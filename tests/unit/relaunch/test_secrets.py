"""What may be shown of a command and an environment: kept is what is known to be harmless, hidden all else."""

from __future__ import annotations

from pathlib import Path

import pytest

from hangdoc.relaunch.records import Command
from hangdoc.relaunch.secrets import HIDDEN, hidden_values, shown_argv, shown_value, veiled

PYTHON = ("python", "-u", "-m", "sglang.launch_server")


@pytest.mark.parametrize(
    "words",
    [
        ("--model-path", "/models/kimi"),
        ("--tp", "8"),
        ("--attention-backend=triton",),
        ("--max-total-tokens", "4096"),
        ("--tokenizer-path", "/models/kimi"),
        ("--served-model-name", "kimi"),
        ("--cuda-graph-bs", "1", "2", "4"),
        ("--unheard-of", "17"),
        ("--disable-radix-cache",),
        ("--host", "0.0.0.0"),
        ("--cuda-graph-backend-prefill=disabled",),
    ],
)
def test_what_is_harmless_is_shown(words: tuple[str, ...]) -> None:
    """The plan shows the command that will run."""
    assert shown_argv((*PYTHON, *words)) == (*PYTHON, *words)


@pytest.mark.parametrize(
    "words",
    [
        ("--api-key", "S"),
        ("--admin-api-key=S",),
        ("--api_key", "S"),
        ("--ssl-keyfile-password", "S"),
        ("--unheard-of", "S"),
        ("--unheard-of=S",),
        ("--hf-overrides", '{"auth": "S"}'),
        ("--served-model-name", "hf_SSSSSSSSSSSS"),
        ("--model-path", "s3://me:S@bucket/model"),
        ("--download-dir=https://user:S@host/x",),
        ("--served-model-name", "sk-SSSSSSSSSSSS"),
        ("S",),
        ("-k", "S"),
    ],
)
def test_what_may_be_a_secret_is_hidden(words: tuple[str, ...]) -> None:
    """By the option's name, by its look, or because nothing is known of it."""
    shown = shown_argv((*PYTHON, *words))
    assert not any("S" in word.replace("S3", "") for word in shown)
    assert any(HIDDEN in word for word in shown)


def test_a_shells_script_is_not_shown() -> None:
    """It may export anything."""
    assert "hush" not in " ".join(shown_argv(("bash", "-c", "export TOKEN=hush; exec python server.py")))


def test_variables_in_front_of_a_command_are_hidden_by_name() -> None:
    """`env` takes them; those of NCCL and SGLang are shown."""
    shown = shown_argv(("env", "HF_TOKEN=hush", "NCCL_DEBUG=INFO", "python", "a.py"))
    assert shown == ("env", f"HF_TOKEN={HIDDEN}", "NCCL_DEBUG=INFO", "python", "a.py")


@pytest.mark.parametrize(
    ("name", "is_shown"),
    [
        ("NCCL_P2P_DISABLE", True),
        ("SGLANG_ENABLE_JIT_DEEPGEMM", True),
        ("SGLANG_API_KEY", False),
        ("HF_TOKEN", False),
        ("HOME", False),
        ("PGPASSWORD", False),
    ],
)
def test_values_of_variables(name: str, is_shown: bool) -> None:
    """Of variables that nobody knows only the name is shown."""
    assert shown_value(name, "1") == ("1" if is_shown else HIDDEN)


def test_hidden_values_are_taken_out_of_other_texts() -> None:
    """The log's last lines may quote them."""
    command = Command((*PYTHON, "--api-key", "tell-no-one"), Path("/"), {"MY_TOKEN": "me-neither", "A": "harmless"})
    text = veiled("api_key='tell-no-one', token me-neither, harmless", hidden_values(command))
    assert text == f"api_key='{HIDDEN}', token {HIDDEN}, harmless"
