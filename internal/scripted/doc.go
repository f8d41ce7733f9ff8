// Package scripted is a model that plays a script: an OpenAI-compatible HTTP
// server whose answers stand in a readable text file. The demo runs it in the
// same process, `thinkflow replay` serves it to any client, tests and
// benchmarks use it to bring about every fault that a real provider shows.
//
// # Requests
//
// POST …/chat/completions plays the next turn, streaming or not as the request
// asks; GET …/models lists the script's model. The prefix of the path does not
// matter. Every request is kept, raw, with the time of its arrival: see
// [Server.Requests] and [PrefixOf].
//
// # Script
//
// A script is lines. Blank lines and lines that start with # are skipped. The
// first word of a line says what to do; a text is given on the line as a Go
// string ("a\n"), bare until the end of the line, or as a block:
//
//	text <<END
//	the lines up to END, each with its line break;
//	`<<END chomp` drops the last line break
//	END
//
// Before the first turn, and in a turn from there on:
//
//	model NAME             the model's name in answers and in /models (scripted)
//	context N              context size that /models reports, in tokens
//	chunk N                characters per delta; 0 sends each text whole (16)
//	rate N                 tokens per second, 4 characters a token; 0: no pauses (0)
//	wire N                 bytes per write to the network; 0: one event a write (0)
//
// Turns, played in order, one per request:
//
//	turn [name]            begins a turn
//	when "text"            the turn waits for a request with this text in a
//	                       message; turns with `when` are tried in order before
//	                       the plain ones (parallel conversations)
//	repeat                 the turn can be played any number of times
//
// Expectations on the request. One that fails is answered with status 501 and
// stands in [Server.Failures]:
//
//	expect contains "text"        some message has it (content or call arguments)
//	expect not-contains "text"    no message has it
//	expect last-contains "text"   the last message has it
//	expect body-contains "text"   the raw body has it
//	expect messages N             there are N messages
//	expect roles system user      these are the roles, in order
//	expect last ROLE              the last message has this role
//	expect tool NAME              this tool is offered; `expect no-tools`
//	expect model NAME             this model is asked for
//	expect header Name: value     a header has this value
//
// The answer, step by step:
//
//	ttft 300ms             pause before the first token (headers are sent)
//	text …                 visible text in deltas
//	reasoning …            in delta field reasoning_content
//	reasoning-alt …        in delta field reasoning
//	call NAME {json}       a native call in deltas; `call#c7 NAME …` sets its id
//	tool-delta {json}      one raw element of delta.tool_calls
//	delta {json}           one raw delta object
//	data …                 one event with this payload, as it stands
//	raw …                  these bytes, nothing added
//	comment keep-alive     a comment line and a blank one
//	error {json}           data: {"error": …} (a text makes {"message": text})
//	error-event {json}     the same after a line `event: error`
//	sleep 20ms             pause
//	keepalive 1s           from here on send a comment each second of waiting
//	await NAME             wait for Server.Release(NAME)
//	hang                   wait until the client goes; `hang headers`: before
//	                       the status line is sent
//	cut                    break the connection; `cut reset`: with a TCP reset
//	eof                    end the body properly, without finish and [DONE]
//	finish REASON          the finish reason's chunk; `finish none`: no such chunk.
//	                       Unless given it is stop, or tool_calls after a call
//	usage IN OUT [cached=N] [reasoning=N] [in-finish]
//	                       token counts, in a chunk of their own without choices
//	                       or in the finish chunk; `usage none`: never. Unless
//	                       given: estimates, when the request asks for usage
//	done none              no [DONE]
//
// Answers that are no stream:
//
//	status 429             HTTP status
//	header Retry-After: 7  any header, Content-Type too
//	body …                 the body; with neither body nor stream steps it is empty
//
// A request for which no turn is left is answered with status 501 and stands in
// [Server.Failures].
package scripted
