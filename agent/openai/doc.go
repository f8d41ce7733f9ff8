// Package openai is the provider adapter: it implements agent.Model over any
// endpoint that speaks OpenAI's chat completions, with the deviations of the
// servers in use (OpenAI, DeepSeek, GLM, Qwen, Mistral, Ollama, llama.cpp,
// vLLM, OpenRouter).
//
// The client library builds the request's URL and headers and reads the lines
// of the stream. Around it stand, because the library loses what is named here:
//
//   - body.go writes the request body: the library leaves out zero values
//     (temperature 0, empty contents and arguments), escapes < and > so that
//     each tag in a prompt costs ten bytes more, checks model names against a
//     list of its own, and cannot carry further fields.
//   - transport.go is the HTTP doer under the library. It puts that body in
//     place, turns failures into agent.ModelError before the library flattens
//     them (Retry-After, HTML pages), and watches the time.
//   - filter.go passes nothing but data events to the library, one line each,
//     marked as data or error. Thereby comments cannot wear out a limit or mix
//     with an error, events of several lines are one, a last line without a
//     line break counts, and no error is invisible.
//   - chunk.go decodes the events leniently; stream.go turns them into deltas
//     and decides whether the answer was complete; calls.go sorts the pieces of
//     native calls.
//   - classify.go words every failure: what happened, where, and what to do.
//
// No key and no header value ever stands in an error.
package openai
