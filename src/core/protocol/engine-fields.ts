/**
 * The fields that engines add to chat completions (vLLM 0.32, SGLang, llama.cpp's server), and the fields of other
 * protocols. A client may send such a field if the model lists it in `extra_params`. If it is not listed, the error
 * tells the client that it could be. Some fields may never be listed, because with them a client would decide what the
 * service has to decide. Rules: docs/configuration.md. Pure.
 */

/**
 * Sampling fields that most engines accept. `sluice init` writes those that the engine accepts into the model's
 * `extra_params`.
 */
export const samplingFields = ["top_k", "min_p", "repetition_penalty", "chat_template_kwargs"] as const;
export type SamplingField = (typeof samplingFields)[number];

/**
 * The fields that no model may list in `extra_params`, grouped by what a client could do with them. They are fields of
 * engines' chat completions, and of the engines' other protocols.
 */
const reasons = byName({
  "changes how much is generated, which the service limits and counts":
    "best_of echo ignore_eos length_penalty max_length max_new_tokens max_output_tokens max_tokens_to_sample " +
    "min_length min_new_tokens min_tokens n_cmpl n_discard n_indent n_keep n_predict num_predict t_max_predict_ms " +
    "t_max_prompt_ms use_beam_search",
  "decides whose turn it is, or which engine, session or adapter answers":
    "bootstrap_host bootstrap_port bootstrap_room data_parallel_rank disagg_prefill_dp_rank ec_transfer_params " +
    "id_slot kv_transfer_params lora lora_path priority request_id rid routed_dp_rank session_id session_params " +
    "slot_id",
  "replaces or cuts the prompt, or its template":
    "add_generation_prompt add_special_tokens chat_template continue_final_message conversation input input_ids " +
    "instructions mm_payload previous_response_id prompt prompt_embeds prompt_token_ids system " +
    "truncate_prompt_tokens truncation truncation_side",
  "hides what the engine reports, by which the service counts": "response_fields",
  "runs code of the client in the engine": "custom_logit_processor",
});

/**
 * The reason why no model may list the field in `extra_params`, to follow the field's name in a sentence ("'best_of'
 * …"); undefined if models may list it.
 */
export function whyNotExtra(name: string): string | undefined {
  return reasons.get(name);
}

const others =
  "allowed_token_ids bad_words cache_prompt cache_salt custom_params documents dry_allowed_length dry_base " +
  "dry_multiplier dry_penalty_last_n dry_sequence_breakers dynatemp_exponent dynatemp_range ebnf enable_thinking " +
  "extra_key grammar guided_choice guided_decoding_backend guided_grammar guided_json guided_regex " +
  "guided_whitespace_pattern include_reasoning include_stop_str_in_output json_schema media_io_kwargs min_keep " +
  "mirostat mirostat_eta mirostat_tau mm_processor_kwargs n_cache_reuse n_probs no_stop_trim post_sampling_probs " +
  "prompt_logprobs reasoning_format regex repeat_last_n repeat_penalty repetition_detection return_token_ids " +
  "return_tokens_as_token_ids samplers separate_reasoning skip_special_tokens spaces_between_special_tokens " +
  "stop_regex stop_token_ids stream_interval stream_reasoning structural_tag structured_outputs " +
  "thinking_budget_tokens thinking_token_budget top_a top_n_sigma typical_p vllm_xargs xtc_probability " +
  "xtc_threshold";
const known: ReadonlySet<string> = new Set([...samplingFields, ...others.split(" ")]);

/** For each field of chat completions, the fields of other protocols and gateways that have its meaning. */
const instead = byName({
  "'max_completion_tokens'": "max_new_tokens max_output_tokens max_tokens_to_sample n_predict num_predict",
  "'messages'": "chat_history contents conversation input previous_response_id prompt thread",
  "a message of the role 'system'": "instructions preamble system systemInstruction system_instruction",
  "'reasoning_effort'": "reasoning think thinking",
  "'response_format'": "format output_config output_format response_mime_type response_schema text",
  "'seed'": "random_seed",
  "'stop'": "stop_sequences",
});

/** Maps each name in a table's lists to the key of its list. */
function byName(table: Readonly<Record<string, string>>): ReadonlyMap<string, string> {
  return new Map(Object.entries(table).flatMap(([key, names]) => names.split(" ").map((name) => [name, key] as const)));
}

/**
 * Fields of other protocols that have no equivalent in chat completions but are spelled nearly like one of its fields.
 */
const strangers: ReadonlySet<string> = new Set(["models", "speed"]);

const listing = "Remove it, or ask whoever runs the service to list it in the model's 'extra_params'";

/**
 * The explanation of a field that only other protocols have, to follow the field's name in a sentence ("'top_k' …");
 * undefined if no protocol has the field.
 */
export function fieldElsewhere(name: string): string | undefined {
  const use = instead.get(name);
  if (use) return `is not a field of chat completions. Use ${use} instead`;
  const why = reasons.get(name);
  if (why) return `is a field of engines that no client may send, because it ${why}. Remove it`;
  if (known.has(name)) return `is a field of engines, and this model does not take it. ${listing}`;
  return strangers.has(name) ? "is not a field of this service. Remove it" : undefined;
}
