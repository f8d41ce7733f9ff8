package profile

// table is what is known of models, the special before the general. Sizes and
// prices are those that the vendors published; they are defaults for estimates,
// never a reason to refuse anything. A wrong row is mended by one line in the
// user's configuration.
func table() []Profile {
	return []Profile{
		// OpenAI. Reasoning is not shown, so there is nothing to teach.
		{Name: "gpt-5", Match: []string{"gpt-5", "gpt-5-2*", "gpt-5.*"}, Context: 400_000, MaxOutput: 128_000, PriceInput: 1.25, PriceOutput: 10, PriceCached: 0.125},
		{Name: "gpt-5-mini", Match: []string{"gpt-5-mini*"}, Context: 400_000, MaxOutput: 128_000, PriceInput: 0.25, PriceOutput: 2, PriceCached: 0.025},
		{Name: "gpt-5-nano", Match: []string{"gpt-5-nano*"}, Context: 400_000, MaxOutput: 128_000, PriceInput: 0.05, PriceOutput: 0.4, PriceCached: 0.005},
		{Name: "gpt-4.1", Match: []string{"gpt-4.1", "gpt-4.1-2*"}, Context: 1_047_576, MaxOutput: 32_768, PriceInput: 2, PriceOutput: 8, PriceCached: 0.5},
		{Name: "gpt-4.1-mini", Match: []string{"gpt-4.1-mini*"}, Context: 1_047_576, MaxOutput: 32_768, PriceInput: 0.4, PriceOutput: 1.6, PriceCached: 0.1},
		{Name: "gpt-4o-mini", Match: []string{"gpt-4o-mini*"}, Context: 128_000, MaxOutput: 16_384, PriceInput: 0.15, PriceOutput: 0.6, PriceCached: 0.075},
		{Name: "gpt-4o", Match: []string{"gpt-4o", "gpt-4o-2*"}, Context: 128_000, MaxOutput: 16_384, PriceInput: 2.5, PriceOutput: 10, PriceCached: 1.25},
		{Name: "o-series", Match: []string{"o3", "o3-*", "o4-*"}, Context: 200_000, MaxOutput: 100_000},
		// gpt-oss thinks in its own channel and was trained on function calls.
		{Name: "gpt-oss", Match: []string{"gpt-oss*"}, Protocol: Native, Context: 131_072},

		// DeepSeek: reasoning in a field of its own, which must not go back.
		{Name: "deepseek-reasoner", Match: []string{"deepseek-reasoner*"}, Teach: Reasoning, Context: 128_000, MaxOutput: 64_000, PriceInput: 0.28, PriceOutput: 0.42, PriceCached: 0.028},
		{Name: "deepseek-chat", Match: []string{"deepseek-chat*", "deepseek-v3*"}, Context: 128_000, MaxOutput: 8_192, PriceInput: 0.28, PriceOutput: 0.42, PriceCached: 0.028},
		// R1 and its distillates as served locally: no tool calls. Servers without a
		// reasoning parser, whose chat template opens the think block, need
		// start_in_think; with one it would be wrong.
		{Name: "deepseek-r1", Match: []string{"deepseek-r1*", "*r1-distill*"}, Teach: Reasoning, NoTools: true, Context: 128_000},

		// GLM: thinking is a switch in the body; its reasoning goes back in tool turns.
		{Name: "glm", Match: []string{"glm-4.5*", "glm-4.6*", "glm-5*", "glm-4.7*"}, Teach: Reasoning, Context: 128_000},

		// Qwen: the coder models do not think, the thinking ones always do.
		{Name: "qwen-coder", Match: []string{"qwen3-coder*", "qwen2.5-coder*"}, Context: 262_144},
		{Name: "qwen-thinking", Match: []string{"qwen3*thinking*"}, Teach: Reasoning, Context: 262_144},
		{Name: "qwq", Match: []string{"qwq*"}, Teach: Reasoning, Context: 131_072},
		{Name: "qwen", Match: []string{"qwen*"}, Teach: Reasoning, Context: 131_072},

		{Name: "kimi", Match: []string{"kimi-k2*", "moonshot*"}, Context: 262_144},
		{Name: "minimax", Match: []string{"minimax-m*"}, Teach: Reasoning, SendReasoning: true, Context: 204_800},
		{Name: "mistral", Match: []string{"mistral*", "devstral*", "codestral*", "magistral*"}, Context: 131_072},
		{Name: "llama", Match: []string{"llama-3*", "llama3*", "meta-llama-3*"}, Context: 131_072},
		{Name: "gemma", Match: []string{"gemma*"}, NoTools: true, Context: 131_072},
		{Name: "gemini", Match: []string{"gemini-2*", "gemini-3*"}, Context: 1_048_576, MaxOutput: 65_536},
		{Name: "claude", Match: []string{"claude-*"}, Context: 200_000, MaxOutput: 64_000},
		{Name: "grok", Match: []string{"grok-4*", "grok-code*"}, Context: 256_000},
	}
}
