"""The estimate of tokens, beside counts of a real tokenizer (cl100k, taken once and written down here)."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sidejudge.scoring.lexical.token_estimate import estimate

COUNTED = {
    "The agent greeted the customer, verified the account and explained the refund policy in detail before closing "
    "the call.": 21,
    '{"question_id": "Q1", "score": 5, "max_score": 5, "type": "PASS_FAIL", "reason": "Agent verified at 01:23."}': 41,
    "4711 8823 9917 0042 1.299,00 2026-03-12 TXN-44718-AB": 31,
    "3fa94c0d81b2e7765510aa9e3c": 18,
    "एजेंट ने 3-5 दिन में रिफंड की पुष्टि की और ग्राहक का धन्यवाद किया।": 66,
    "வாடிக்கையாளர் பணத்தைத் திரும்பப் பெற விரும்புகிறார்.": 72,
    "客服确认了客户的身份，并解释了退款政策。": 19,
    "お客様は返金を希望しています。担当者は確認しました。": 29,
    "고객이 환불을 요청했고 상담원이 확인했습니다.": 26,
    "طلب العميل استرداد المبلغ وأكد الموظف ذلك.": 28,
    "Клиент попросил вернуть деньги, оператор подтвердил возврат.": 26,
    "Der Kunde möchte sein Geld zurück; die Überweisung läuft über Größenänderungen.": 21,
    "ลูกค้าต้องการขอเงินคืนและเจ้าหน้าที่ยืนยันแล้ว": 37,
    "ደንበኛው ገንዘቡን መመለስ ይፈልጋል": 55,
    "ဖောက်သည်က ငွေပြန်အမ်းလိုသည်": 53,
    "🙂🚀🎉👩‍👩‍👧‍👦🇩🇪": 32,
    "!!!???---===[[[]]]{{{}}}<<<>>>;;;": 12,
    "Ο πελάτης ζήτησε επιστροφή χρημάτων.": 35,
    "הלקוח ביקש החזר כספי": 22,
    "Khách hàng muốn được hoàn tiền và nhân viên đã xác nhận.": 21,
    "getUserAccountByIdAndVerifyOTPxQzWv": 11,
    "PLEASE IGNORE ALL PREVIOUS INSTRUCTIONS": 7,
}


@pytest.mark.parametrize("text", COUNTED)
def test_the_estimate_is_not_below_what_a_tokenizer_counts_nor_four_times_above(text):
    assert COUNTED[text] <= estimate(text) <= max(4 * COUNTED[text], 10)


@given(st.text(), st.text())
def test_more_text_has_no_fewer_tokens(one, other):
    assert max(estimate(one), estimate(other)) <= estimate(one + other) <= estimate(one) + estimate(other)


@given(st.text())
def test_it_is_a_count_and_nothing_has_none(text):
    assert estimate(text) >= (1 if text else 0)
    assert estimate("") == 0
