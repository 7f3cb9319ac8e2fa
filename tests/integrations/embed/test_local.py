"""A model in this process: real ones, made with the library and loaded from disk by the product's own code."""

from __future__ import annotations

import asyncio
import shutil
import subprocess
import sys
import threading

import pytest

from sidejudge.integrations.embed import REST_S, EmbeddingError, LocalModel
from sidejudge.scoring.evaluators.embedding import cosine, unit
from tests.needs import SENTENCE_TRANSFORMERS

pytestmark = SENTENCE_TRANSFORMERS.mark


@pytest.fixture
async def model(embedding_model):
    opened = LocalModel(str(embedding_model), device="cpu", batch_size=4)
    yield opened
    await opened.close()


async def test_words_that_mean_the_same_lie_close_in_any_language(model):
    refund, german, hindi, weather = map(unit, await model.embed(["Refund", "Erstattung", "रिफंड", "weather"]))
    assert cosine(refund, german) == pytest.approx(1 / 1.04, abs=1e-3)
    assert cosine(refund, hindi) == pytest.approx(1 / 1.04, abs=1e-3)
    assert cosine(refund, weather) == pytest.approx(0.0, abs=1e-3)


async def test_vectors_come_in_the_order_of_their_texts_however_many_batches_it_takes(model):
    texts = ["refund", "weather", "card", "monday", "billing", "account", "refund", "agent", "customer"]
    together = await model.embed(texts)
    alone = [(await model.embed([text]))[0] for text in texts]
    for one, other in zip(together, alone, strict=True):
        assert list(one) == pytest.approx(list(other), abs=1e-6)


async def test_the_event_loop_runs_on_while_the_model_works_in_its_own_thread(model):
    await model.start()
    inside, go_on, threads = threading.Event(), threading.Event(), []
    encode = model._model.encode

    def slow(*args, **kwargs):
        threads.append(threading.current_thread().name)
        inside.set()
        assert go_on.wait(60)
        return encode(*args, **kwargs)

    model._model.encode = slow
    try:
        working = asyncio.create_task(model.embed(["refund"]))
        await asyncio.to_thread(inside.wait, 60)
        assert not working.done()  # and yet this line runs
        go_on.set()
        assert len(await working) == 1
    finally:
        del model._model.encode
    assert threads[0].startswith("sidejudge-embedding")


async def test_a_transformer_loads_from_disk_and_gives_the_same_vector_in_any_company(tmp_path):
    from sentence_transformers import SentenceTransformer  # noqa: PLC0415  # slow
    from sentence_transformers.sentence_transformer.modules import Pooling, Transformer  # noqa: PLC0415  # slow
    from torch import manual_seed  # noqa: PLC0415  # slow
    from transformers import BertConfig, BertModel, BertTokenizerFast  # noqa: PLC0415  # slow

    words = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "refund", "weather", "card", "##s"]
    (tmp_path / "vocab.txt").write_text("\n".join(words))
    manual_seed(1)
    size = {"hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 16}
    bert = BertModel(BertConfig(vocab_size=len(words), max_position_embeddings=32, **size))
    bert.save_pretrained(tmp_path / "bert")
    BertTokenizerFast(str(tmp_path / "vocab.txt")).save_pretrained(tmp_path / "bert")
    transformer = Transformer(str(tmp_path / "bert"), max_seq_length=32)
    SentenceTransformer(modules=[transformer, Pooling(16)], device="cpu").save(str(tmp_path / "model"))

    model = LocalModel(str(tmp_path / "model"), device="cpu")
    alone, *_ = await model.embed(["refund cards"])
    in_company, long, *_ = await model.embed(["refund cards", "weather " * 500, "card"])
    assert unit(in_company) == pytest.approx(unit(alone), abs=1e-5)
    assert cosine(unit(alone), unit(long)) < 0.999
    await model.close()


@pytest.mark.parametrize("name", ["/there/is/none", "./none", "~/none/of/that"])
async def test_a_folder_that_is_not_there_is_named_with_what_to_do(name):
    model = LocalModel(name)
    with pytest.raises(EmbeddingError, match="there is no folder") as reported:
        await model.start()
    assert "evaluators.embedding.model" in reported.value.remedy
    await model.close()


async def test_a_folder_without_a_model_is_named_with_its_cause(tmp_path):
    (tmp_path / "config.json").write_text("{")
    model = LocalModel(str(tmp_path), device="cpu")
    with pytest.raises(EmbeddingError, match="cannot be loaded") as reported:
        await model.start()
    assert "\n" not in str(reported.value)
    assert "folder that holds" in reported.value.remedy
    await model.close()


async def test_a_model_that_is_damaged_is_named_with_its_cause(embedding_model, tmp_path):
    folder = shutil.copytree(embedding_model, tmp_path / "damaged")
    (folder / "model.safetensors").write_bytes(b"not at all")
    model = LocalModel(str(folder), device="cpu")
    with pytest.raises(EmbeddingError, match="cannot be loaded"):
        await model.start()
    await model.close()


async def test_a_model_that_could_not_be_loaded_rests_before_it_is_tried_again(embedding_model, tmp_path):
    now = [0.0]
    folder = tmp_path / "later"
    model = LocalModel(str(folder), device="cpu", clock=lambda: now[0])
    with pytest.raises(EmbeddingError):
        await model.embed(["refund"])
    folder.symlink_to(embedding_model)
    now[0] = REST_S - 1
    with pytest.raises(EmbeddingError, match="there is no folder"):
        await model.embed(["refund"])
    now[0] = REST_S
    assert len(await model.embed(["refund"])) == 1
    await model.close()


async def test_a_closed_model_says_so():
    model = LocalModel("/none")
    await model.close()
    await model.close()
    with pytest.raises(EmbeddingError, match="shutting down"):
        await model.embed(["refund"])


async def test_a_model_that_only_a_hub_has_is_refused_with_the_remedy_where_there_is_no_network(monkeypatch):
    from huggingface_hub import constants  # noqa: PLC0415  # slow

    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)  # it was read from the environment when it was imported
    model = LocalModel("somebody/model-that-is-nowhere")
    with pytest.raises(EmbeddingError, match="somebody/model-that-is-nowhere cannot be loaded") as reported:
        await model.start()
    assert "let this machine reach the hub" in reported.value.remedy
    await model.close()


def test_making_a_model_imports_neither_torch_nor_the_library():
    code = (
        "import sys; from sidejudge.integrations.embed import LocalModel; LocalModel('x');"
        "print([m for m in ('torch', 'sentence_transformers', 'transformers', 'numpy') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
