"""Secrets: what has the shape of a key is struck, what people need to read stays, and nothing explodes."""

from __future__ import annotations

import base64
import string
import uuid
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sidejudge.scoring.lexical.shown_text import struck


@pytest.mark.parametrize(
    "secret",
    [
        "sk-very-secret", "sk-proj-Ab3_dEf-9hIJKLmnop", "sk-ant-api03-AAbb_cc-11", "pk-lf-5b1c-aaaa",
        "AIzaSyA1b2C3d4E5f6G7h8I9j0KlMnOpQrStUvW", "AKIAIOSFODNN7EXAMPLE", "hf_AbCdEfGhIjKlMnOpQr", "gsk_a1b2c3d4e5f6",
        "ghp_16C7e42F292c6912E7710c838347Ae178B4a", "github_pat_11ABCDE0_abcdef", "xoxb-1234-abcd", "sk-****abcd1234",
        "0123456789abcdef0123456789abcdef", "dGhpcyBpczEgYSBzZTJjcmV0IGtleTMgb2Ygc29tZTQgbGVuZ3Ro",
        "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0NTY3ODkwIn0.dozjgNryP4J3jVmNHl0w5N",
    ],
)  # fmt: skip
def test_a_key_is_struck_wherever_it_stands(secret):
    for stated in (secret, f"Incorrect API key provided: {secret}. See", f'{{"key": "{secret}"}}', f"x={secret}&y"):
        found = struck(stated)
        assert secret not in found
        assert secret[5:-2] not in found
        assert "…" in found


@pytest.mark.parametrize(
    ("stated", "left"),
    [
        ("Authorization: Bearer abcdefgh.12", "Authorization: Bearer …"),
        ("basic dXNlcjpwYXNz=", "basic …"),
        ("https://user:pass@host:80/v1 failed", "https://…@host:80/v1 failed"),
        ("https://token@host/v1", "https://…@host/v1"),
        ("api_key='hunter2hunter'", "api_key='…'"),
        ("password: s3cretpw, x", "password: …, x"),
        ("Illegal header value b'GenieKey eb243592-faa2-4ba2\\n'", "Illegal header value …"),
    ],
)
def test_only_the_secret_is_struck(stated, left):
    assert struck(stated) == left


@pytest.mark.parametrize(
    "stated",
    [
        "The model `openai/gpt-4o-mini-2024-07-18` does not exist or you do not have access to it.",
        "sentence-transformers/paraphrase-multilingual-MiniLM-L12-v2 is not a folder",
        "accounts/fireworks/models/llama-v3p1-405b-instruct", "anthropic.claude-3-5-sonnet-20241022-v2:0",
        "litellm.InternalServerError: InternalServerError: OpenAIException - Connection error.",
        "/usr/lib/python3.11/site-packages/sentence_transformers/SentenceTransformer.py",
        f"request {uuid.UUID(int=2**127 + 12345)}", "Please use bearer authentication", "basic authentication is off",
        "your messages resulted in 9000 tokens", "2026-11-21T13:05:00.123456789Z", "https://host:8443/v1/chat/completions",
        "You exceeded your current quota, please check your plan and billing details.",
        "password: must be set", "scikit-learn or sk-learn",
    ],
)  # fmt: skip
def test_what_people_have_to_read_stays(stated):
    assert struck(stated) == stated


@given(st.binary(min_size=16, max_size=80).map(bytes.hex).filter(lambda key: not key.isdigit() and not key.isalpha()))
def test_a_hexadecimal_key_is_struck(key):
    assert key not in struck(f"key {key} refused")


@pytest.mark.parametrize("seed", range(50))
def test_a_random_key_without_a_prefix_is_struck(seed):
    draw = Random(seed)
    key = "".join(draw.choices(string.ascii_letters + string.digits, k=48))
    assert key not in struck(f"wrong key ({key})")
    key = base64.b64encode(draw.randbytes(48)).decode()
    assert key not in struck(f"Authorization {key}")


@given(st.text(max_size=300))
def test_any_text_can_be_read_and_nothing_is_left_to_strike(text):
    assert len(struck(struck(text))) <= len(struck(text)) + 5


@pytest.mark.parametrize("part", ["a", "a1", "sk-", "://", "bearer ", "api_key=", "1", "=", "a.", "://a@", " "])
def test_a_hostile_message_costs_no_more_than_its_length(part):
    assert len(struck(part * 1_000_000)) <= 20_000
