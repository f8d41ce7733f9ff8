package lsp

import (
	"context"
	"errors"
	"fmt"

	"go.lsp.dev/jsonrpc2"
	"go.lsp.dev/protocol"
)

// wireError is the one place where an error of a handler becomes a JSON-RPC
// error: context errors are -32800, undecodable params -32602, coded errors
// keep their code, and everything else is -32603.
func wireError(err error) error {
	var coded *jsonrpc2.Error
	switch {
	case err == nil:
		return nil
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return jsonrpc2.NewError(protocol.CodeRequestCancelled, "the request was cancelled")
	case errors.Is(err, jsonrpc2.ErrParse): // protocol.ServerHandler, params
		return jsonrpc2.NewError(jsonrpc2.InvalidParams, "the params cannot be read: "+err.Error())
	case errors.As(err, &coded):
		return coded
	}
	return jsonrpc2.NewError(jsonrpc2.InternalError, err.Error())
}

// badParams is an error for params that can be decoded and make no sense.
func badParams(format string, args ...any) error {
	return jsonrpc2.NewError(jsonrpc2.InvalidParams, fmt.Sprintf(format, args...))
}
