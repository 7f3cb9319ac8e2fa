# ruff: noqa: INP001  # a script, in no package
r"""An application with the Langfuse SDK. Its base URL is the sidecar, which passes everything on to Langfuse.

pip install langfuse
LANGFUSE_BASE_URL=http://127.0.0.1:4318 LANGFUSE_PUBLIC_KEY=… LANGFUSE_SECRET_KEY=… OTEL_SERVICE_NAME=researcher \\
python app.py "What does clause 4 say?"
"""

import sys

from langfuse import Langfuse

langfuse = Langfuse()


def answer(question: str) -> str:
    """Look it up, and answer; the model is left to your imagination."""
    with langfuse.start_as_current_observation(as_type="agent", name="research", input=question) as agent:
        with langfuse.start_as_current_observation(as_type="tool", name="pdf_retrieval", input=question) as tool:
            tool.update(output="Clause 4: refunds within 30 days.")
        reply = "Refunds are possible within 30 days (clause 4)."
        agent.update(output=reply)
    return reply


if __name__ == "__main__":
    print(answer(" ".join(sys.argv[1:]) or "What does clause 4 say?"))  # noqa: T201  # an example prints
    langfuse.shutdown()
