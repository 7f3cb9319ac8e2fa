"""Receivers whose names come from their places: what is known of each follows it when their order changes."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace

import pytest
import yaml

from sidejudge.integrations.store.notification_outbox import Entry
from sidejudge.integrations.store.sqlite import Store
from sidejudge.monitor.alerting.notify.build import Notifications, move
from sidejudge.monitor.config import load
from sidejudge.monitor.config.notify import NotifySection, names
from tests.fakes.receiver import Act, receiving
from tests.monitor.alerting.notify.test_notifier import event

NOW_NS = 10**18


@pytest.fixture
def outbox(tmp_path):
    store = Store(tmp_path / "state.sqlite")
    yield store.notifications
    store.close()


def hook(address, **given):
    return NotifySection.model_validate({"webhook": {"url": f"https://{address}.example/hook"}, **given})


async def filled(outbox, entries):
    """An outbox in which each receiver has a note and a notice that name its address."""
    await move(entries, outbox)
    for name, entry in zip(names(tuple(entries)), entries, strict=True):
        address = entry.webhook.url.get_secret_value()
        body = Entry(destination=name, id="0123456789abcdef-1", body=address)
        await outbox.put([body], NOW_NS, {f"told/{name}/0123456789abcdef": address, f"digest/{name}": address})


async def known(outbox, entries):
    """By place, the addresses that stand in what is known of each receiver after it was moved."""
    await move(entries, outbox)
    notes, found = outbox.notes(), []
    for name in names(tuple(entries)):
        stated = {each.body for each in outbox.waiting(name, 9)}
        stated |= {text for note, text in notes.items() if note in (f"told/{name}/0123456789abcdef", f"digest/{name}")}
        found.append("".join(sorted(stated)).replace("https://", "").replace(".example/hook", " ").strip())
    return found


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        (["a", "b"], ["b", "a"], ["b", "a"]),
        (["a", "b", "c"], ["c", "a", "b"], ["c", "a", "b"]),
        (["a", "b"], ["b"], ["b"]),  # a is gone, and its notices with it
        (["a", "b"], ["b", "new"], ["b", ""]),
        (["a", "b"], ["new", "a", "b"], ["", "a", "b"]),
        (["a", "b"], ["a", "changed"], ["a", "b"]),  # another address in the same place is the same receiver
        (["a", "a"], ["a", "b", "a"], ["a", "a", ""]),  # nobody knows which was which
    ],
)
async def test_what_is_known_of_a_receiver_follows_its_address(outbox, before, after, expected):
    await filled(outbox, [hook(each) for each in before])
    assert await known(outbox, [hook(each) for each in after]) == expected
    assert await known(outbox, [hook(each) for each in after]) == expected


async def test_a_receiver_with_a_name_keeps_what_is_known_under_it(outbox):
    await filled(outbox, [hook("a", name="pager"), hook("b")])
    assert await known(outbox, [hook("b", name="pager"), hook("a")]) == ["a", "b"]
    assert await known(outbox, [hook("a"), hook("b", name="pager")]) == ["b", "a"]


async def test_what_a_version_without_addresses_noted_stays_where_it_is(outbox):
    await outbox.put([], NOW_NS, {"told/webhook/0123456789abcdef": "a"})
    assert await known(outbox, [hook("a"), hook("b")]) == ["a", ""]


async def test_no_address_stands_in_a_note(outbox):
    await move([hook("secretive")], outbox)
    assert outbox.notes().keys() == {"address/webhook"}
    assert "secretive" not in str(outbox.notes())


async def test_a_notice_that_waits_goes_to_its_receiver_after_a_start_in_another_order(tmp_path):
    store, path = Store(tmp_path / "state.sqlite"), tmp_path / "sidejudge.yaml"

    async def sent(*receivers, about=()):
        path.write_text(yaml.safe_dump({"alerts": {"notify": [{"webhook": {"url": each.url}} for each in receivers]}}))
        notifications = Notifications(
            load(path, {}), store, clock_ns=lambda: NOW_NS, illustrate=lambda event, _since_ns: event,
            counters=SimpleNamespace(exported=lambda *_, **__: None, export_failed=lambda *_: None),
            watch=SimpleNamespace(posted=tuple), watched={},
        )  # fmt: skip
        await notifications.start()
        for each in about:
            await notifications.take(each)
        for _ in range(100):
            if len(well.taken) == 1 and (len(ill.got) if about else len(ill.taken)):
                break
            await asyncio.sleep(0.05)
        await notifications.close()

    with receiving() as ill, receiving() as well:
        ill.act = lambda _number: Act(status=500)
        await sent(ill, well, about=[event()])
        ill.act = lambda _number: Act()
        await sent(well, ill)
        assert (len(ill.taken), len(well.taken)) == (1, 1)
    store.close()
