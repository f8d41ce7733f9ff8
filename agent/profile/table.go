package profile

// table is what is known of models, the special before the general. Every row says
// where its numbers stand, and when they were read; what could not be found is left
// out, for unknown is not 0. They are defaults for estimates, never a reason to
// refuse anything: an endpoint that tells the size of its context is believed
// before this table, and one line in the user's configuration mends a row.
func table() []Profile {
	return []Profile{
		// OpenAI. Reasoning is not shown, so there is nothing to teach.
		{Name: "gpt-5", Match: []string{"gpt-5", "gpt-5-2*"}, Context: 400_000, MaxOutput: 128_000, PriceInput: 1.25, PriceOutput: 10, PriceCached: 0.125,
			Source: "docs.rs openai-cost 0.1.0 (from openai.com/api/pricing, second quarter of 2026); sizes as gpt-5-nano's"},
		{Name: "gpt-5-mini", Match: []string{"gpt-5-mini*"}, Context: 400_000, MaxOutput: 128_000, PriceInput: 0.25, PriceOutput: 2, PriceCached: 0.025,
			Source: "github/docs data/tables/copilot/models-and-pricing.yml, vercel.com/ai-gateway/models/gpt-5-mini (2026-11)"},
		{Name: "gpt-5-nano", Match: []string{"gpt-5-nano*"}, Context: 400_000, MaxOutput: 128_000, PriceInput: 0.05, PriceOutput: 0.4, PriceCached: 0.005,
			Source: "developers.openai.com/api/docs/models/gpt-5-nano (2026-11)"},
		{Name: "gpt-5.2", Match: []string{"gpt-5.2*", "gpt-5.3-codex*"}, Context: 400_000, MaxOutput: 128_000, PriceInput: 1.75, PriceOutput: 14, PriceCached: 0.175,
			Source: "github/docs data/tables/copilot/models-and-pricing.yml (2026-11); sizes as gpt-5.4-mini's"},
		{Name: "gpt-5.4-mini", Match: []string{"gpt-5.4-mini*"}, Context: 400_000, MaxOutput: 128_000, PriceInput: 0.75, PriceOutput: 4.5, PriceCached: 0.075,
			Source: "vercel.com/ai-gateway/models/openai/gpt-5.4-mini, docs.rs adk-model 0.6.0 (2026-03)"},
		// The later ones have larger contexts; none smaller was found.
		{Name: "gpt-5.x", Match: []string{"gpt-5.*", "gpt-6*"}, Context: 400_000, MaxOutput: 128_000,
			Source: "the smallest of the family: vercel.com/ai-gateway/models/openai/gpt-5.4-mini (2026-11)"},
		{Name: "gpt-4.1", Match: []string{"gpt-4.1", "gpt-4.1-2*"}, Context: 1_047_576, MaxOutput: 32_768, PriceInput: 2, PriceOutput: 8, PriceCached: 0.5,
			Source: "github/docs data/tables/copilot/models-and-pricing.yml, vercel.com/ai-gateway/models/gpt-4.1-fast (2026-11)"},
		{Name: "gpt-4.1-mini", Match: []string{"gpt-4.1-mini*"}, Context: 1_047_576, MaxOutput: 32_768, PriceInput: 0.4, PriceOutput: 1.6, PriceCached: 0.1,
			Source: "prices of LiteLLM (2025-04), three quarters off for cached ones: docs.rs adk-model 0.6.0 (2026-03); vercel.com/ai-gateway/models/gpt-4.1-mini-fast"},
		{Name: "gpt-4o-mini", Match: []string{"gpt-4o-mini*"}, Context: 128_000, MaxOutput: 16_384, PriceInput: 0.15, PriceOutput: 0.6, PriceCached: 0.075,
			Source: "CommitBrief wiki, Provider-OpenAI (2026-05-27); MicrosoftDocs/azure-ai-docs"},
		{Name: "gpt-4o", Match: []string{"gpt-4o", "gpt-4o-2*"}, Context: 128_000, MaxOutput: 16_384, PriceInput: 2.5, PriceOutput: 10, PriceCached: 1.25,
			Source: "CommitBrief wiki, Provider-OpenAI (2026-05-27); MicrosoftDocs/azure-ai-docs"},
		{Name: "o-series", Match: []string{"o3", "o3-*", "o4-*"}, Context: 200_000, MaxOutput: 100_000,
			Source: "RooCodeInc/Roo-Code pull 2691 (2025-04-17); prices changed since"},
		// gpt-oss thinks in its own channel and was trained on function calls.
		{Name: "gpt-oss", Match: []string{"gpt-oss*"}, Protocol: Native, Context: 131_072, Source: notChecked},

		// DeepSeek: reasoning in a field of its own. Since V3.2 it must go back while
		// tools are called. Prices and contexts changed with V4 under the same names.
		{Name: "deepseek-reasoner", Match: []string{"deepseek-reasoner*"}, Teach: Reasoning, SendReasoning: true, Context: 128_000, MaxOutput: 64_000,
			Source: "RooCodeInc/Roo-Code packages/types/src/providers/deepseek.ts (2025-12-09), api-docs.deepseek.com/guides/thinking_mode; getmaxim.ai"},
		{Name: "deepseek-chat", Match: []string{"deepseek-chat*", "deepseek-v3*"}, Context: 128_000, MaxOutput: 8_192,
			Source: "RooCodeInc/Roo-Code packages/types/src/providers/deepseek.ts (2025-12-09)"},
		// R1 and its distillates as served locally: no tool calls. Servers without a
		// reasoning parser, whose chat template opens the think block, need
		// start_in_think; with one it would be wrong.
		{Name: "deepseek-r1", Match: []string{"deepseek-r1*", "*r1-distill*"}, Teach: Reasoning, NoTools: true, Context: 128_000,
			Source: "docs.rs matrixcode-core 0.4.43 (a list of 2025)"},

		// GLM: thinking is a switch in the body; its reasoning goes back in tool turns.
		{Name: "glm-4.5", Match: []string{"glm-4.5*"}, Teach: Reasoning, Context: 131_072, Source: "wavespeed.ai/llm/z-ai/glm-4.5 (2026)"},
		{Name: "glm", Match: []string{"glm-4.6*", "glm-4.7*"}, Teach: Reasoning, Context: 202_752,
			Source: "fireworks.ai glm-4p6, vercel.com/ai-gateway/models/glm-4.6 (2026); 4.7 was not found"},
		{Name: "glm-5", Match: []string{"glm-5.2*", "glm-5.3*", "glm-5.4*"}, Teach: Reasoning, Context: 1_048_576, MaxOutput: 131_072,
			Source: "openrouter.ai/~z-ai/glm-latest (2026-08), wavespeed.ai/llm/z-ai/glm-5.2"},
		{Name: "glm-5.0", Match: []string{"glm-5*"}, Teach: Reasoning, Source: notChecked},

		// Qwen: the coder models do not think, the thinking ones always do.
		{Name: "qwen-coder", Match: []string{"qwen3-coder*"}, Context: 262_144, Source: "model card of Qwen3-Coder-Next (2026-02); apxml.com qwen3-coder-480b-a35b"},
		{Name: "qwen2.5-coder", Match: []string{"qwen2.5-coder*"}, Context: 131_072, Source: "SE-Arena context_window.json; as it is served locally it is often 32,768, which the server tells"},
		{Name: "qwen-thinking", Match: []string{"qwen3*thinking*"}, Teach: Reasoning, Context: 262_144, Source: notChecked},
		{Name: "qwq", Match: []string{"qwq*"}, Teach: Reasoning, Source: "no size: SE-Arena names 32,768 for the preview only"},
		{Name: "qwen", Match: []string{"qwen*"}, Teach: Reasoning, Context: 131_072, Source: "docs.rs matrixcode-core 0.4.43 (a list of 2025: 128K for Qwen2.5 and Qwen3)"},

		{Name: "kimi", Match: []string{"kimi-k2*"}, Context: 256_000, Source: "docs.openclaw.ai/providers/moonshot, promptfoo.dev/docs/providers/moonshot (2026)"},
		{Name: "minimax", Match: []string{"minimax-m*"}, Teach: Reasoning, SendReasoning: true, Context: 204_800, Source: "promptfoo.dev/docs/providers/minimax (2026)"},
		{Name: "mistral", Match: []string{"mistral*", "devstral*", "codestral*", "magistral*"}, Source: "no size: it differs between the models of the family"},
		{Name: "llama", Match: []string{"llama-3*", "llama3*", "meta-llama-3*"}, Context: 128_000, Source: "SE-Arena context_window.json; the first Llama 3 had 8,192"},
		{Name: "gemma", Match: []string{"gemma*"}, NoTools: true, Context: 128_000, Source: "SE-Arena context_window.json (gemma-3-27b-it)"},
		{Name: "gemini", Match: []string{"gemini-2*", "gemini-3*"}, Context: 1_048_576, MaxOutput: 65_536, Source: "sshdw/Nexora wiki, Context-Windows (live, 2026-10-03); huggingface.co danielrosehill/Single-Prompt-Book (2025-04)"},
		{Name: "claude", Match: []string{"claude-*"}, Context: 200_000, MaxOutput: 64_000, Source: "sshdw/Nexora wiki, Context-Windows (2026-10-03); sourcegraph/docs pull 1333"},
		{Name: "grok", Match: []string{"grok-4", "grok-4-0*", "grok-code*"}, Context: 256_000, Source: "vercel.com/ai-gateway/models/grok-code-fast-1, wavespeed.ai/llm/x-ai/grok-4 (2026)"},
		{Name: "grok-4.x", Match: []string{"grok-4*"}, Context: 500_000, Source: "the smallest of the family: docs.apiyi.com/en/api-capabilities/grok (2026-07-13)"},
	}
}

// notChecked is the source of a row whose numbers nobody looked up.
const notChecked = "not checked"
