"""One small plan in every layout in which planners write plans; the prompt of its first task is any text."""

import json
import textwrap
from collections.abc import Callable

import yaml

Layout = Callable[[str], str]

SECOND = "Second prompt,\n\nof two lines."
BARE_SAFE = (
    "One line.",
    "Line one,\nline two.\n\n- a bullet\n  - nested\n\n1. a number",
    "**CRITICAL:** do it.\n\n**Context:**\n- **Note:** x\n- `code`",
    "Text with ```inline``` and a fence:\n```python\nprint('### Task 9.9: fake')\n**Dependencies:** task-9\n```\nand after it.",
    "Trailing blanks stay  \nhere.\n    indented code\n\ttab",
    "#### Small heading\ntext\n##### Smaller\nmore",
    "List<String> and <b>tags</b>, a | table | row, ümläut ☃ 😀",
    "Before\n\n---\n\nafter a rule",
    "Role: you are nobody.\nTime: now.\n\nDependencies: none of them.",
    "> a quote\n>\n> **Task:** no",
    "**Notes:** mind\n**Model:** a table\n**Name:** x\n**ID:** y\n**Notes:**\n- z",
    "See:\n~~~\n<prompt>\n~~~",
)
"""Prompts that need no wrapper."""
WRAPPED_ONLY = (
    "### Task 9.9: fake\n**Task ID:** task-9.9\n**Prompt:** no\n**Dependencies:** task-9.8",
    "# Heading\n\n## Other heading\n\ntext",
    "**Dependencies:** none in this one\n**Verification Criteria:**\n- [ ] fake",
    "---\n\n# Plan: other\n\n## Tasks\n\n---",
    "<details>\n<summary>x</summary>\n</details>",
)
"""Prompts that need `<prompt>`, `<details>` or a fence around them."""
TAGGED_ONLY = (
    "```\nan open fence",
    "  leading and trailing blanks  \n\n",
    "\n\nblank lines around\n\n",
    "",
    "text with </details> in it",
    "<!-- an open comment",
)
"""Prompts that only `<prompt>` keeps whole."""


def canonical(prompt: str) -> str:
    return f"""# Plan: P
**Request:** r
**Goal:** g
## Reasoning
why
## Tasks
### task-1.1: First
**Task ID:** task-1.1
**Title:** First
**Agent Role Description:** Worker
**Prompt:**
<prompt>
{prompt}
</prompt>
**Dependencies:** None
**QC Agent Role Description:** Checker
**Verification Criteria:**
- [ ] (100 pts) c1: works
**Max Retries:** 0

### task-2.1: Second
**Task ID:** task-2.1
**Title:** Second
**Agent Role Description:** Worker
**Prompt:**
<prompt>
{SECOND}
</prompt>
**Dependencies:** task-1.1
**Verification Criteria:**
- [ ] works

## Summary
Nothing more.
"""


def bold_blocks(prompt: str) -> str:
    return f"""Let me think.

## Task Graph

**Task ID:** task-1.1

**Title:** First

**Agent Role Description:** Worker

**Prompt:**
{prompt}

**Tool-Based Execution:**
- Use: run

**Dependencies:** None

**Parallel Group:** N/A

**QC Agent Role Description:** Checker

**Verification Criteria:**
- [ ] (100 pts) works

**Max Attempts:** 1

---

**Task ID:** task-2.1

**Title:** Second

**Agent Role Description:** Worker

**Dependencies:** task-1.1

**Success Criteria:**
- works

**Prompt:**
{SECOND}

---

## Dependency Summary

**Critical Path:** task-1.1 → task-2.1
"""


def bullets(prompt: str) -> str:
    body = textwrap.indent(prompt, "  ")
    return f"""#### Task 1.1: First

- **Task ID:** task-1.1
- **Title:** First
- **Worker Role:**  
  Worker
- **Prompt:**  
{body}
- **Dependencies:** None
- **QC Role:** Checker
- **Verification Criteria:**
  - [ ] works
- **Retries:** 0

---

#### Task 2.1: Second

- **Task ID:** task-2.1
- **Title:** Second
- **Worker Role:** Worker
- **Dependencies:** task-1.1
- **Criteria:**
  - works
- **Prompt:**
{textwrap.indent(SECOND, "    ")}

## Notes

- **Prompt:** none here
"""


def heading_fields(prompt: str) -> str:
    return f"""# Title of the document

## Task Breakdown

### Task ID: task-1.1
#### **Title**
First

#### **Agent Role Description**  
Worker

#### **Optimized Prompt**  
<details>
<summary>Click to expand</summary>

````markdown
{prompt}
````
</details>

#### **Dependencies**  
None

#### **QC Agent Role**
Checker

#### **Verification Criteria**  
Function:
- [ ] works

#### **Max Retries**  
0

---

### Task ID: task-2.1
#### **Title**
Second

#### **Agent Role Description**
Worker

#### **Optimized Prompt**
<prompt>
{SECOND}
</prompt>

#### **Dependencies**
task-1.1

#### **Verification Criteria**
- [ ] works

## Dependencies

None of these matter any more.
"""


def details_prompt_tag(prompt: str) -> str:
    return heading_fields("x").replace("````markdown\nx\n````", f"<prompt>\n{prompt}\n</prompt>")


def details_bare(prompt: str) -> str:
    return heading_fields("x").replace("````markdown\nx\n````", prompt)


def titled(prompt: str) -> str:
    return f"""## Specifications

| Task ID | Title | Dependencies |
|---|---|---|
| task-1.1 | First | None |
| task-2.1 | Second | task-1.1 |

### **task-1.1: First**

**Worker Role:** Worker  
**Prompt:**  
{prompt}

**Dependencies:** None  
**Reviewer:** Checker  
**Acceptance Criteria:**  
- [ ] works  
**Max Retries:** 0

---

### **task-2.1: Second**

**Worker Role:** Worker  
**Prompt:**  
{SECOND}

**Dependencies:** task-1.1  
**Verification Criteria:**  
- [ ] works

## Order

1. **task-1.1** → 2. **task-2.1**

```mermaid
graph TD
  task-1.1 --> task-2.1
```
"""


def no_ids(prompt: str) -> str:
    return f"""### Task 1.1: First

**Role:** Worker
**Depends On:** None
**QC Role:** Checker
**Criteria:**
- works
**Retries:** 0
**Instructions:**
{prompt}

### Task 2.1 - Second

**Role:** Worker
**Requires:** Task 1.1
**Criteria:**
- works
**Work:** {SECOND}
"""


def fenced(prompt: str) -> str:
    return titled(f"~~~~text\n{prompt}\n~~~~")


def json_text(prompt: str) -> str:
    tasks = [
        {
            "id": "task-1.1",
            "title": "First",
            "agentRoleDescription": "Worker",
            "prompt": prompt,
            "dependencies": [],
            "qcAgentRoleDescription": "Checker",
            "verificationCriteria": ["works"],
            "maxRetries": 0,
        },
        {
            "taskId": "task-2.1",
            "title": "Second",
            "workerRole": "Worker",
            "prompt": SECOND,
            "dependencies": ["task-1.1"],
            "criteria": [{"id": "c1", "text": "works", "points": 100}],
        },
    ]
    return json.dumps({"overview": {"goal": "g"}, "reasoning": "why", "tasks": tasks}, indent=2)


def json_fence(prompt: str) -> str:
    tasks = json.dumps(json.loads(json_text(prompt))["tasks"], ensure_ascii=False)
    return f"Here it is:\n\n```json\n{tasks}\n```\n\nBye."


def yaml_text(prompt: str) -> str:
    return yaml.safe_dump(json.loads(json_text(prompt)), allow_unicode=True, sort_keys=False)


def yaml_fence(prompt: str) -> str:
    return f"Here it is:\n\n```yaml\n{yaml_text(prompt)}```\n\nBye."


def field_tables(prompt: str) -> str:
    head, rule = "| Field | Value |", "|---|---|"
    first = f"{head}\n{rule}\n| **Role** | Worker |\n| Dependencies | None |\n| Max Retries | 0 |\n| QC Role | Checker |"
    second = f"{head}\n{rule}\n| Title | Second |\n| Role | Worker |\n| Dependencies | `task-1.1` |"
    return "\n\n".join(
        f"### {name}\n\n{table}\n\n**Prompt:**\n<prompt>\n{text}\n</prompt>\n**Criteria:**\n- works\n"
        for name, table, text in (("task-1.1: First", first, prompt), ("task-2.1", second, SECOND))
    )


def wrapped(prompt: str) -> str:
    return f"```markdown\n{canonical(prompt)}```\n"


BARE: dict[str, Layout] = {
    "bold blocks": bold_blocks,
    "bullets": bullets,
    "titled headings": titled,
    "no ids": no_ids,
}
WRAPPED: dict[str, Layout] = {
    "details and fence": heading_fields,
    "fence": fenced,
}
DETAILS: dict[str, Layout] = {"details, bare": details_bare}
TAGGED: dict[str, Layout] = {
    "canonical": canonical,
    "details and prompt tag": details_prompt_tag,
    "wrapped in a fence": wrapped,
    "json": json_text,
    "json list in a fence": json_fence,
    "yaml": yaml_text,
    "yaml in a fence": yaml_fence,
    "tables of fields": field_tables,
}
EVERY = BARE | WRAPPED | DETAILS | TAGGED
CASES = [
    *((name, prompt) for name in EVERY for prompt in BARE_SAFE),
    *((name, prompt) for name in WRAPPED | DETAILS | TAGGED for prompt in WRAPPED_ONLY),
    *((name, prompt) for name in TAGGED for prompt in TAGGED_ONLY),
]
