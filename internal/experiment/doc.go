// Package experiment measures what the streaming route is worth: the same tasks,
// done by ThinkFlow in each of its ways and by other agents, against one model.
//
// # Parts
//
// A [Task] is a prompt, a folder to work in, and a validator that looks at
// nothing but the folder and the printed answer. A failed validation's message is
// the next prompt, up to a limit. An [Agent] is a program that is started like a
// user would start it, in a fresh home and with an environment made from nothing.
// The [Endpoint] is either the simulated model of this package or a proxy before
// a real one; both count the same things.
//
// # The simulated model
//
// It knows what is to be done and decides from each request how it may be said:
// as tags when the system prompt teaches them, else with the offered tool whose
// schema fits. It sees only what stands in the request: a text that is to be
// edited and is not there must be read first, so an agent that attaches it saves
// a call and one that strips it from the history pays one. It believes what it is
// told about failures. A serial caller asks for one thing in an answer, a parallel
// one for all things of a stage. It waits for the first token and sends one token
// of four characters at a time, in real time.
//
// What it cannot show is whether a real model keeps to the form; that is what
// runs against real endpoints are for.
//
// # Counting
//
// Input tokens are the bytes of a request's body divided by four, in every wire
// form. Cached tokens are the longest common prefix of tools, system text and
// messages with any earlier request of the run, divided by four. Output tokens are
// characters sent divided by four. Against a real endpoint all three are what the
// provider reports; what it does not report is unknown, never 0.
package experiment
