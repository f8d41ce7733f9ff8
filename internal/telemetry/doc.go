// Package telemetry sends traces of runs, requests and tool calls to an
// OpenTelemetry collector, when an OTLP endpoint is named in the environment;
// else there is nothing of it. Names follow OpenTelemetry's conventions for
// generative AI (1.40). Spans hold no task, answer, argument or path.
//
// The SDK is set up at the first run, so that starting the program costs
// nothing. Spans go out as OTLP/HTTP with JSON, which every collector takes on
// its HTTP port: the exporter of OpenTelemetry would bring gRPC and protobuf
// into a program that needs neither (9 MB, and time at each start).
package telemetry
