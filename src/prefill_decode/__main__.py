"""Command line: continue a phrase and print what every pass did; or, with ``cost`` as the first word, estimate one."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Sequence
from typing import NoReturn

import numpy as np

from . import smollm2, toy
from .cost import command as cost
from .generate import Generation, Pass, check_request, generate, greedy
from .sampling import Sampler

PROG = "prefill_decode"


class Parser(argparse.ArgumentParser):
    """Say what is wrong in one line, without the usage text."""

    def error(self, message: str) -> NoReturn:
        """Print one line on standard error and leave with status 2."""
        self.exit(2, f"{PROG}: error: {message} (see {self.prog} --help)\n")


def build_parser() -> Parser:
    """Return the parser of the command line."""
    parser = Parser(
        prog=f"python -m {PROG}",
        description="Continue a phrase with SmolLM2-135M-Instruct, in NumPy, and print what every pass did.",
        epilog=(
            f"A phrase that begins with a dash goes after --. python -m {PROG} cost --help: what a request costs on a "
            "device you do not have."
        ),
    )
    parser.add_argument("phrase", help="the phrase to continue; - reads it from standard input")
    parser.add_argument("--max-new-tokens", type=int, default=16, metavar="M", help="at most so many (default: 16)")
    parser.add_argument("--no-cache", action="store_true", help="recompute every position in every pass")
    parser.add_argument("--chat", action="store_true", help="put the phrase into the model's own chat template")
    parser.add_argument("--toy", action="store_true", help="the toy weights instead of the real ones")
    parser.add_argument("--ignore-stop", action="store_true", help="go on after a stop token")
    parser.add_argument("--dtype", choices=("float32", "float64"), help="of all computed numbers (default: float32)")
    parser.add_argument("--json", action="store_true", help="print one JSON object and nothing else")
    drawn = parser.add_argument_group(
        "choosing", "Greedy without any of these; in the order of the transformers library."
    )
    drawn.add_argument("--temperature", type=float, metavar="T", help="divide the logits by it; 0 is greedy")
    drawn.add_argument("--top-k", type=int, metavar="K", help="keep the K likeliest tokens")
    drawn.add_argument("--top-p", type=float, metavar="P", help="keep the fewest likeliest tokens that have P together")
    drawn.add_argument(
        "--min-p", type=float, metavar="P", help="keep tokens with P times the likeliest one's probability"
    )
    drawn.add_argument(
        "--seed", type=int, metavar="N", help="of the draws (default: 0); alone it draws from the softmax"
    )
    return parser


def build_cost_parser() -> Parser:
    """Return the parser of the command ``cost``."""
    parser = Parser(
        prog=f"python -m {PROG} cost",
        description="Estimate a batch of requests on a device: does it fit, how fast, how sure.",
        epilog=f'To continue the phrase "cost": python -m {PROG} -- cost',
    )
    cost.add_arguments(parser)
    return parser


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line; return the exit status."""
    argv = sys.argv[1:] if argv is None else argv
    is_cost = argv[:1] == ["cost"]  # a command only as the first word: "-- cost" is a phrase
    parser = build_cost_parser() if is_cost else build_parser()
    args = parser.parse_args(argv[1:] if is_cost else argv)
    try:
        (cost.run if is_cost else run)(args)
    except (ValueError, smollm2.WeightsError) as error:
        parser.error(str(error))
    except KeyboardInterrupt:
        print(f"\n{PROG}: interrupted", file=sys.stderr)
        return 130
    return 0


def run(args: argparse.Namespace) -> None:
    """Load the weights, generate, print. Raise ValueError or WeightsError for what cannot be done."""
    phrase = _read_phrase(args.phrase)
    if args.max_new_tokens < 1:
        raise ValueError(f"--max-new-tokens {args.max_new_tokens}: expected at least 1, the first comes out of prefill")
    if args.toy and args.dtype == "float32":
        raise ValueError("--dtype float32: the toy computes in float64, leave --dtype out")
    sample = chooser(args)  # what is out of range is said before the weights are read
    weights = toy if args.toy else smollm2
    model, tokenizer = toy.load() if args.toy else smollm2.load(np.dtype(args.dtype or "float32"))
    prompt = tokenizer.chat(phrase) if args.chat else tokenizer.encode(phrase)
    prompt = check_request(model, prompt, args.max_new_tokens)
    stop_ids = () if args.ignore_stop else weights.STOP_IDS
    growing = None if args.json else GrowingText(tokenizer, prompt, stop_ids, show_prompt=not args.chat)
    result = generate(
        model,
        prompt,
        args.max_new_tokens,
        use_cache=not args.no_cache,
        sample=sample,
        stop_ids=stop_ids,
        on_token=growing,
    )
    if args.json:
        print(json.dumps(as_json(result, tokenizer, stop_ids, sample)))
    else:
        print("\n\n" + table(result.passes) + "\n" + summary(result))


def chooser(args: argparse.Namespace) -> Callable[[np.ndarray], int]:
    """Return what chooses tokens: greedy, or a sampler if one of its options is given."""
    options = {name: getattr(args, name) for name in ("temperature", "top_k", "top_p", "min_p", "seed")}
    given = {name: value for name, value in options.items() if value is not None}
    if given.get("seed", 0) < 0:
        raise ValueError(f"--seed {given['seed']}: expected 0 or more")
    return Sampler(**given) if given else greedy


class GrowingText:
    """Print the text as tokens come; a character waits until its last byte is there."""

    def __init__(self, tokenizer, prompt: list[int], stop_ids: Sequence[int], *, show_prompt: bool) -> None:
        self.tokenizer, self.ids, self.stop_ids = tokenizer, list(prompt), stop_ids
        text = tokenizer.decode(prompt)
        self.printed = len(text)
        if show_prompt:
            self._print(text)

    def __call__(self, token: int, record: Pass) -> None:
        """Take one more token."""
        if token in self.stop_ids:
            return
        self.ids.append(token)
        text = self.tokenizer.decode(self.ids)
        if not text.endswith("\N{REPLACEMENT CHARACTER}"):
            self._print(text[self.printed :])
            self.printed = len(text)

    @staticmethod
    def _print(text: str) -> None:
        encoding = sys.stdout.encoding or "utf-8"
        print(text.encode(encoding, "replace").decode(encoding), end="", flush=True)


def table(passes: Sequence[Pass]) -> str:
    """Return one line a pass."""
    lines = [f"{'pass':>5}  {'phase':<8}{'query rows':>11}{'keys':>7}{'pairs':>12}{'ms':>10}"]
    lines += [
        f"{i:>5}  {p.phase:<8}{p.n_queries:>11,}{p.n_keys:>7,}{p.pairs:>12,}{p.seconds * 1e3:>10.1f}"
        for i, p in enumerate(passes, 1)
    ]
    return "\n".join(lines)


def summary(result: Generation) -> str:
    """Return TTFT, TPOT, the cache and why the run ended."""
    tpot = "none (one token)" if result.tpot is None else f"{result.tpot * 1e3:.1f} ms"
    ended = {"length": "", "stop": "; ended by a stop token", "context": "; ended: the context is full"}
    return (
        f"TTFT {result.ttft * 1e3:.1f} ms; TPOT {tpot}; "
        f"cache {result.cache_len:,} entries, {result.cache_bytes:,} bytes used{ended[result.stopped_by]}"
    )


def as_json(result: Generation, tokenizer, stop_ids: Sequence[int], sample: Callable[[np.ndarray], int]) -> dict:
    """Return the run as plain data; ``text`` holds the new tokens only, without a final stop token.

    ``sampler`` holds the arguments of the ``Sampler`` that chose, to repeat the run with; it is None for greedy.
    """
    new_ids = result.new_ids
    prompt_ids = result.ids[: len(result.ids) - len(new_ids)]
    said = new_ids[:-1] if new_ids[-1] in stop_ids else new_ids
    return {
        "prompt_ids": prompt_ids,
        "generated_ids": new_ids,
        "prompt_tokens": tokenizer.tokens(prompt_ids),
        "text": tokenizer.decode(said),
        "sampler": sample.settings if isinstance(sample, Sampler) else None,
        "passes": [vars(p) for p in result.passes],
        "cache_len": result.cache_len,
        "cache_bytes": result.cache_bytes,
        "ttft_s": result.ttft,
        "tpot_s": result.tpot,
    }


def _read_phrase(argument: str) -> str:
    text = argument
    if argument == "-":
        text = sys.stdin.buffer.read().decode("utf-8", "surrogateescape")
        text = text.removesuffix("\r\n") if text.endswith("\r\n") else text.removesuffix("\n")
    if not text:
        raise ValueError("the phrase is empty: give at least one character")
    return text


if __name__ == "__main__":
    sys.exit(main())
