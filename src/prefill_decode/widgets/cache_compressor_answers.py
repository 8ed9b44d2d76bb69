"""Questions of a `CacheCompressor`: each is asked only of rows that are there and bear out what its answer says."""

from collections.abc import Callable, Mapping, Sequence

from prefill_decode.storage import Stored

Rows = Mapping[str, Stored]
Texts = Mapping[str, Mapping[str, str]]
Tokens = Mapping[str, Sequence[str]]
EIGHT, FOUR, TWO, PER_TOKEN = "8 bits", "4 bits", "2 bits", "2 bits, keys per token"
WINDOW, NO_SINKS = "window of 64", "window without sinks"


def answers(rows: Rows, texts: Texts, tokens: Tokens) -> list[dict[str, str]]:
    """Return what can be asked: ``ask``, the ``storage`` that is shown and the ``answer`` with its numbers."""
    exact = next(iter(rows))
    asked = [
        {"ask": ask, "storage": names[0], "answer": answer(exact, rows, texts, tokens)}
        for ask, names, answer in QUESTIONS
        if all(name in rows for name in names)
    ]
    return [each for each in asked if each["answer"]]


def _same_text(name: str, exact: str, rows: Rows) -> bool:
    return rows[name].common == rows[exact].common


def _free(exact: str, rows: Rows, texts: Texts, tokens: Tokens) -> str:
    told, share = texts[EIGHT], float(texts[EIGHT]["ratio"])
    if not (_same_text(EIGHT, exact, rows) and share < 1):
        return ""
    return (
        f"{EIGHT}, on this text: {round(100 * (1 - share))} % fewer bytes and the same {told['common']} tokens."
        f" Logits move by {told['mean']} on average; perplexity is {told['perplexity']} ({exact}"
        f" {texts[exact]['perplexity']})."
    )


def _break(exact: str, rows: Rows, texts: Texts, tokens: Tokens) -> str:
    at = rows[TWO].common
    if at >= min(len(tokens[TWO]), len(tokens[exact])):
        return ""
    same = (
        f" {FOUR} still had the same {texts[FOUR]['common']}." if FOUR in rows and _same_text(FOUR, exact, rows) else ""
    )
    here, there = (tokens[name][at].strip() or repr(tokens[name][at]) for name in (TWO, exact))
    return f"At {TWO}, with token {at + 1}: “{here}” instead of “{there}”, and all that follows reads it too.{same}"


def _same_bytes(exact: str, rows: Rows, texts: Texts, tokens: Tokens) -> str:
    worse, better = texts[PER_TOKEN], texts[TWO]
    if worse["bytes"] != better["bytes"] or rows[PER_TOKEN].perplexity <= rows[TWO].perplexity:
        return ""
    return (
        f"Both take {worse['bytes']} bytes a token. Keys per token instead of per channel: logits move by"
        f" {worse['mean']} instead of {better['mean']}, perplexity is {worse['perplexity']} instead of"
        f" {better['perplexity']}. A few channels of the keys are large and set the scale of their whole group."
    )


def _sinks(exact: str, rows: Rows, texts: Texts, tokens: Tokens) -> str:
    without, kept = texts[NO_SINKS], texts[WINDOW]
    if without["bytes"] != kept["bytes"] or rows[NO_SINKS].perplexity <= rows[WINDOW].perplexity:
        return ""
    return (
        f"Many heads rest most of their weight on them. Both windows take {kept['bytes']} bytes a token; without the"
        f" first tokens logits move by {without['mean']} instead of {kept['mean']}, and perplexity is"
        f" {without['perplexity']} instead of {kept['perplexity']}."
    )


def _smaller(exact: str, rows: Rows, texts: Texts, tokens: Tokens) -> str:
    told = texts[FOUR]
    if not _same_text(FOUR, exact, rows) or rows[FOUR].largest < 1:
        return ""
    return (
        f"No. {FOUR} move single logits by up to {told['largest']}, and yet the {told['common']} tokens are the same:"
        f" another one must become the largest first. Perplexity is {told['perplexity']} ({exact}"
        f" {texts[exact]['perplexity']}).{_window_against_bits(rows, texts)}"
    )


def _window_against_bits(rows: Rows, texts: Texts) -> str:
    if not {WINDOW, TWO} <= set(rows):
        return ""
    window, bits = rows[WINDOW], rows[TWO]
    if not (window.mean < bits.mean and window.perplexity > bits.perplexity):
        return ""
    return (
        f" And the {WINDOW} moves them less than {TWO} on average, {texts[WINDOW]['mean']} against"
        f" {texts[TWO]['mean']}, but its perplexity is worse: {texts[WINDOW]['perplexity']} against"
        f" {texts[TWO]['perplexity']}."
    )


# What is asked, the rows it needs (the first one is shown), and what answers it: nothing if the rows say otherwise.
QUESTIONS: tuple[tuple[str, tuple[str, ...], Callable[[str, Rows, Texts, Tokens], str]], ...] = (
    ("What is free?", (EIGHT,), _free),
    ("Where does the text break?", (TWO,), _break),
    ("Same bytes, worse text?", (PER_TOKEN, TWO), _same_bytes),
    ("Why keep the first tokens?", (NO_SINKS, WINDOW), _sinks),
    ("Is a smaller logit change always a better text?", (FOUR,), _smaller),
)
