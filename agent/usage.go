package agent

// tokensOf estimates the tokens of n bytes of text; the field's rule of thumb
// is four characters a token.
func tokensOf(n int) int { return (n + 3) / 4 }

// price is what a million tokens cost; the unit is the user's.
type price struct{ input, output, cached float64 }

// addTurn accounts one request. reported is what the provider said, nil when
// the stream was cancelled or the server said nothing; then the input is what
// was estimated, the output is estimated from its bytes, and the total is
// flagged: unknown is not 0.
func (u *Usage) addTurn(reported *TurnUsage, estimated, outBytes int, p price) {
	in, out, cached := -1, -1, 0
	if reported != nil {
		in, out = reported.Input, reported.Output
		if reported.Cached > 0 {
			cached = reported.Cached
		}
		if reported.Reasoning > 0 {
			u.ReasoningTokens += reported.Reasoning
		}
	}
	if in < 0 {
		in, u.Estimated = estimated, true
	}
	if out < 0 {
		out, u.Estimated = tokensOf(outBytes), true
	}
	u.Requests++
	u.InputTokens += in
	u.OutputTokens += out
	u.CachedTokens += cached
	u.Cost += (float64(in-cached)*p.input + float64(cached)*p.cached + float64(out)*p.output) / 1e6
}
