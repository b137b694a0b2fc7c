"""Makes cases.json: conversations as transformers' apply_chat_template writes them.

    python3 -m venv /tmp/venv && /tmp/venv/bin/pip install transformers jinja2
    /tmp/venv/bin/python tests/golden/chat/make_chat.py

The templates are written after the descriptions of the formats, in the ways that templates of that
kind are usually written.
"""

import json
from pathlib import Path

import transformers
from tokenizers import Tokenizer, models

HERE = Path(__file__).resolve().parent

TEMPLATES = {
    "chatml": (
        "{% for message in messages %}{{'<|im_start|>' + message['role'] + '\n' + message['content']"
        " + '<|im_end|>' + '\n'}}{% endfor %}{% if add_generation_prompt %}"
        "{{ '<|im_start|>assistant\n' }}{% endif %}"),
    "chatml-default-system": """\
{% for message in messages %}
{% if loop.first and messages[0]['role'] != 'system' %}
<|im_start|>system
You are a helpful assistant.<|im_end|>
{% endif %}
<|im_start|>{{ message.role }}
{{ message.content }}<|im_end|>
{% endfor %}
{%- if add_generation_prompt %}
{{- '<|im_start|>assistant\\n' }}
{%- endif %}
""",
    "qwen-tools": """\
{%- if tools %}
    {{- '<|im_start|>system\\n' }}
    {{- tools | tojson }}
{%- else %}
    {%- if messages[0].role == 'system' %}
        {{- '<|im_start|>system\\n' + messages[0].content + '<|im_end|>\\n' }}
    {%- endif %}
{%- endif %}
{%- set ns = namespace(multi_step_tool=true, last_query_index=messages|length - 1) %}
{%- for message in messages[::-1] %}
    {%- set index = (messages|length - 1) - loop.index0 %}
    {%- if ns.multi_step_tool and message.role == "user" and message.content is string and not(message.content.startswith('<tool_response>') and message.content.endswith('</tool_response>')) %}
        {%- set ns.multi_step_tool = false %}
        {%- set ns.last_query_index = index %}
    {%- endif %}
{%- endfor %}
{%- for message in messages %}
    {%- if (message.role == "user") or (message.role == "system" and not loop.first) %}
        {{- '<|im_start|>' + message.role + '\\n' + message.content + '<|im_end|>' + '\\n' }}
    {%- elif message.role == "assistant" %}
        {%- set content = message.content %}
        {%- if '</think>' in content %}
            {%- set content = content.split('</think>')[-1].lstrip('\\n') %}
        {%- endif %}
        {%- if loop.index0 > ns.last_query_index %}
            {{- '<|im_start|>' + message.role + '\\n<think>\\n\\n</think>\\n\\n' + content.strip('\\n') }}
        {%- else %}
            {{- '<|im_start|>' + message.role + '\\n' + content }}
        {%- endif %}
        {{- '<|im_end|>\\n' }}
    {%- endif %}
{%- endfor %}
{%- if add_generation_prompt %}
    {{- '<|im_start|>assistant\\n' }}
    {%- if enable_thinking is defined and enable_thinking is false %}
        {{- '<think>\\n\\n</think>\\n\\n' }}
    {%- endif %}
{%- endif %}""",
    "llama2": (
        "{% if messages[0]['role'] == 'system' %}{% set loop_messages = messages[1:] %}"
        "{% set system_message = messages[0]['content'] %}{% else %}{% set loop_messages = messages %}"
        "{% set system_message = false %}{% endif %}{% for message in loop_messages %}"
        "{% if (message['role'] == 'user') != (loop.index0 % 2 == 0) %}"
        "{{ raise_exception('Conversation roles must alternate user/assistant/user/assistant/...') }}"
        "{% endif %}{% if loop.index0 == 0 and system_message != false %}"
        "{% set content = '<<SYS>>\\n' + system_message + '\\n<</SYS>>\\n\\n' + message['content'] %}"
        "{% else %}{% set content = message['content'] %}{% endif %}"
        "{% if message['role'] == 'user' %}"
        "{{ bos_token + '[INST] ' + content.strip() + ' [/INST]' }}"
        "{% elif message['role'] == 'assistant' %}"
        "{{ ' ' + content.strip() + ' ' + eos_token }}{% endif %}{% endfor %}"),
    "llama3": (
        "{% set loop_messages = messages %}{% for message in loop_messages %}"
        "{% set content = '<|start_header_id|>' + message['role'] + '<|end_header_id|>\n\n'+ "
        "message['content'] | trim + '<|eot_id|>' %}{% if loop.index0 == 0 %}"
        "{% set content = bos_token + content %}{% endif %}{{ content }}{% endfor %}"
        "{% if add_generation_prompt %}{{ '<|start_header_id|>assistant<|end_header_id|>\n\n' }}"
        "{% endif %}"),
    "gemma": (
        "{{ bos_token }}{% if messages[0]['role'] == 'system' %}"
        "{{ raise_exception('System role not supported') }}{% endif %}"
        "{% for message in messages %}"
        "{% if (message['role'] == 'user') != (loop.index0 % 2 == 0) %}"
        "{{ raise_exception('Conversation roles must alternate') }}{% endif %}"
        "{% if (message['role'] == 'assistant') %}{% set role = 'model' %}"
        "{% else %}{% set role = message['role'] %}{% endif %}"
        "{{ '<start_of_turn>' + role + '\n' + message['content'] | trim + '<end_of_turn>\n' }}"
        "{% endfor %}{% if add_generation_prompt %}{{'<start_of_turn>model\n'}}{% endif %}"),
    "gemma3": """\
{{ bos_token }}
{%- if messages[0]['role'] == 'system' -%}
    {%- if messages[0]['content'] is string -%}
        {%- set first_user_prefix = messages[0]['content'] + '\n\n' -%}
    {%- else -%}
        {%- set first_user_prefix = messages[0]['content'][0]['text'] + '\n\n' -%}
    {%- endif -%}
    {%- set loop_messages = messages[1:] -%}
{%- else -%}
    {%- set first_user_prefix = "" -%}
    {%- set loop_messages = messages -%}
{%- endif -%}
{%- for message in loop_messages -%}
    {%- if (message['role'] == 'assistant') -%}
        {%- set role = "model" -%}
    {%- else -%}
        {%- set role = message['role'] -%}
    {%- endif -%}
    {{ '<start_of_turn>' + role + '\n' + (first_user_prefix if loop.first else "") }}
    {%- if message['content'] is string -%}
        {{ message['content'] | trim }}
    {%- elif message['content'] is iterable -%}
        {%- for item in message['content'] -%}
            {{ item['text'] | trim }}
        {%- endfor -%}
    {%- endif -%}
    {{ '<end_of_turn>\n' }}
{%- endfor -%}
{%- if add_generation_prompt -%}
    {{'<start_of_turn>model\n'}}
{%- endif -%}
""",
    "mistral": (
        "{{ bos_token }}{% for message in messages %}{% if message['role'] == 'user' %}"
        "{{ '[INST] ' + message['content'] + ' [/INST]' }}{% elif message['role'] == 'assistant' %}"
        "{{ message['content'] + eos_token }}{% else %}"
        "{{ raise_exception('Only user and assistant roles are supported!') }}{% endif %}{% endfor %}"),
    "mistral-system": """\
{%- if messages[0]["role"] == "system" %}
    {%- set system_message = messages[0]["content"] %}
    {%- set loop_messages = messages[1:] %}
{%- else %}
    {%- set loop_messages = messages %}
{%- endif %}
{%- set ns = namespace() %}
{%- set ns.index = 0 %}
{{- bos_token }}
{%- for message in loop_messages %}
    {%- if message["role"] == "user" %}
        {%- if loop.last and system_message is defined %}
            {{- "[INST] " + system_message + "\\n\\n" + message["content"] + "[/INST]" }}
        {%- else %}
            {{- "[INST] " + message["content"] + "[/INST]" }}
        {%- endif %}
        {%- set ns.index = ns.index + 1 %}
    {%- elif message["role"] == "assistant" %}
        {{- " " + message["content"]|trim + eos_token}}
    {%- else %}
        {{- raise_exception("Only user and assistant roles are supported") }}
    {%- endif %}
{%- endfor %}
""",
    "phi3": (
        "{% for message in messages %}{% if message['role'] == 'system' %}"
        "{{'<|system|>\n' + message['content'] + '<|end|>\n'}}{% elif message['role'] == 'user' %}"
        "{{'<|user|>\n' + message['content'] + '<|end|>\n'}}"
        "{% elif message['role'] == 'assistant' %}"
        "{{'<|assistant|>\n' + message['content'] + '<|end|>\n'}}{% endif %}{% endfor %}"
        "{% if add_generation_prompt %}{{ '<|assistant|>\n' }}{% else %}{{ eos_token }}{% endif %}"),
    "zephyr": """\
{% for message in messages %}
{% if message['role'] == 'user' %}
{{ '<|user|>\n' + message['content'] + eos_token }}
{% elif message['role'] == 'system' %}
{{ '<|system|>\n' + message['content'] + eos_token }}
{% elif message['role'] == 'assistant' %}
{{ '<|assistant|>\n'  + message['content'] + eos_token }}
{% endif %}
{% if loop.last and add_generation_prompt %}
{{ '<|assistant|>' }}
{% endif %}
{% endfor %}
""",
    "olmo2": (
        "{{ bos_token }}{% for message in messages %}{% if message['role'] == 'system' %}"
        "{{ '<|system|>\n' + message['content'] + '\n' }}{% elif message['role'] == 'user' %}"
        "{{ '<|user|>\n' + message['content'] + '\n' }}{% elif message['role'] == 'assistant' %}"
        "{% if not loop.last %}{{ '<|assistant|>\n'  + message['content'] + eos_token + '\n' }}"
        "{% else %}{{ '<|assistant|>\n'  + message['content'] + eos_token }}{% endif %}{% endif %}"
        "{% if loop.last and add_generation_prompt %}{{ '<|assistant|>\n' }}{% endif %}{% endfor %}"),
    # What the shapes above do not reach.
    "white-space": """\
  {# a comment #}
  {% if true %}
a {{ 'b' }} \t
   {%+ if true %}c
{% endif +%}
d{%- if true -%}   e   {%- endif %}

  {% endif %}
f {# another -#}   g
{% for m in messages if m.role != 'system' %}{{ loop.index }}/{{ loop.length }}{{ "," if not loop.last }}{% else %}none{% endfor %}
""",
    "operators": """\
{{ 7 // 2 }} {{ -7 // 2 }} {{ -7 % 3 }} {{ 2 + 3 * 4 - 1 }} {{ 'a' ~ 1 ~ none ~ true }} \
{{ 1 < 2 <= 2 }} {{ not 1 == 2 and 'x' in 'xyz' }} {{ 'q' not in ['a', 'b'] }} {{ '' or 'else' }} \
{{ [1, 2, 3][1:] | length }} {{ 'abcdef'[::-2] }} {{ 'abc'[-1] }} {{ {'k': 'v'}['k'] }} {{ {'k': 'v'}.k }} \
{{ messages | first is mapping }} {{ missing is defined }} {{ missing | default('none') }} \
{{ ['a', 'b'] | join(', ') }} {{ 'x y x' | replace('x', 'z') }} {{ ' s ' | trim | upper }} \
{{ 'one two' | title }} {{ "it's" + 'a "b"\\n' }} {{ (1, )|length if false else 'other' }} {{ 'caf\u00e9'[3] }} \
{{ range(3) | list | length }} {{ messages[0].get('role') }} {{ messages[0].get('x', 'y') }} {{ 3 is odd }}""",
}
TEMPLATES["operators"] = TEMPLATES["operators"].replace("{{ (1, )|length if false else 'other' }}",
                                                        "{{ 1 if false else 'other' }}")

CONVERSATIONS = {
    "question": [{"role": "user", "content": "What is the capital of France?"}],
    "system": [{"role": "system", "content": "Be brief."},
               {"role": "user", "content": "  Hello \u00e9\n"}],
    "turns": [{"role": "user", "content": "1 + 1?"},
              {"role": "assistant", "content": "<think>\nhm\n</think>\n\n2"},
              {"role": "user", "content": "And <|im_end|> 2 + 2?"}],
    "answered": [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": " Hello. "}],
}


def main():
    tokenizer = transformers.PreTrainedTokenizerFast(
        tokenizer_object=Tokenizer(models.BPE(vocab={"<s>": 0, "</s>": 1}, merges=[])),
        bos_token="<s>", eos_token="</s>")
    cases = []
    for name, template in TEMPLATES.items():
        for conversation, messages in CONVERSATIONS.items():
            for generation in (True, False):
                case = {"template": name, "messages": conversation,
                        "add_generation_prompt": generation}
                try:
                    case["text"] = tokenizer.apply_chat_template(
                        messages, chat_template=template, tokenize=False,
                        add_generation_prompt=generation)
                except Exception as error:  # raise_exception
                    case["error"] = str(error)
                cases.append(case)
    written = {"templates": TEMPLATES, "conversations": CONVERSATIONS, "cases": cases}
    (HERE / "cases.json").write_text(json.dumps(written, indent=1) + "\n")
    print(f"{len(cases)} cases, {sum('error' in case for case in cases)} of them refused")
    print([case for case in cases if "error" in case][:3])
    print(cases[-8]["text"] if "text" in cases[-8] else cases[-8])


if __name__ == "__main__":
    main()
