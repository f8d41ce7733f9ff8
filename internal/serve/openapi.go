package serve

import (
	"embed"
	"fmt"
	"net/http"
	"strings"

	"github.com/google/jsonschema-go/jsonschema"
)

//go:embed page.html page.js page.css
var assets embed.FS

func asset(name, media string) func(*Server) http.HandlerFunc {
	return func(*Server) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			data, err := assets.ReadFile(name)
			if err != nil {
				http.Error(w, err.Error(), http.StatusInternalServerError)
				return
			}
			w.Header().Set("Content-Type", media)
			_, _ = w.Write(data)
		}
	}
}

func (s *Server) openapi() http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		d, err := Describe(s.o.Version)
		if err != nil {
			s.fail(w, http.StatusInternalServerError, "internal", err.Error())
			return
		}
		s.answer(w, http.StatusOK, d)
	}
}

// Describe is the OpenAPI 3.1 description of the server, made from the table
// that also serves it.
func Describe(version string) (map[string]any, error) {
	paths := map[string]map[string]any{}
	for _, r := range routes() {
		op := map[string]any{"operationId": r.ID, "summary": r.Summary}
		path := strings.TrimSuffix(r.Path, "{$}")
		if strings.Contains(path, "{id}") {
			op["parameters"] = []any{map[string]any{"name": "id", "in": "path", "required": true, "schema": map[string]any{"type": "string"}, "description": "id of the run"}}
		}
		if r.ID == "events" {
			op["parameters"] = append(op["parameters"].([]any),
				map[string]any{"name": "Last-Event-ID", "in": "header", "schema": map[string]any{"type": "integer"}},
				map[string]any{"name": "after", "in": "query", "schema": map[string]any{"type": "integer"}})
		}
		if r.Body != nil {
			schema, err := schemaOf(r.Body)
			if err != nil {
				return nil, err
			}
			op["requestBody"] = map[string]any{"content": map[string]any{"application/json": map[string]any{"schema": schema}}}
		}
		responses := map[string]any{}
		for code, text := range r.Codes {
			responses[fmt.Sprint(code)] = map[string]any{"description": text}
			switch {
			case code >= 400:
				responses[fmt.Sprint(code)].(map[string]any)["content"] = map[string]any{"application/json": map[string]any{"schema": map[string]any{"$ref": "#/components/schemas/Problem"}}}
			case code == http.StatusNoContent:
			case r.Media != "":
				responses[fmt.Sprint(code)].(map[string]any)["content"] = map[string]any{r.Media: map[string]any{}}
			case r.Answer != nil:
				schema, err := schemaOf(r.Answer)
				if err != nil {
					return nil, err
				}
				responses[fmt.Sprint(code)].(map[string]any)["content"] = map[string]any{"application/json": map[string]any{"schema": schema}}
			}
		}
		op["responses"] = responses
		if paths[path] == nil {
			paths[path] = map[string]any{}
		}
		paths[path][strings.ToLower(r.Method)] = op
	}
	problem, err := schemaOf(Problem{})
	if err != nil {
		return nil, err
	}
	return map[string]any{
		"openapi": "3.1.0",
		"info":    map[string]any{"title": "ThinkFlow", "version": version, "description": "Runs over HTTP; events as in docs/events.md."},
		"paths":   paths,
		"components": map[string]any{
			"schemas": map[string]any{"Problem": problem},
			"securitySchemes": map[string]any{
				"token":  map[string]any{"type": "http", "scheme": "bearer"},
				"cookie": map[string]any{"type": "apiKey", "in": "cookie", "name": cookieName},
			},
		},
		"security": []any{map[string]any{"token": []any{}}, map[string]any{"cookie": []any{}}},
	}, nil
}

func schemaOf(v any) (any, error) {
	switch v := v.(type) {
	case RunBody:
		return jsonschema.For[RunBody](nil)
	case Begun:
		return jsonschema.For[Begun](nil)
	case ApproveBody:
		return jsonschema.For[ApproveBody](nil)
	case SteerBody:
		return jsonschema.For[SteerBody](nil)
	case ResumeBody:
		return jsonschema.For[ResumeBody](nil)
	case Cancelled:
		return jsonschema.For[Cancelled](nil)
	case TicketView:
		return jsonschema.For[TicketView](nil)
	case Problem:
		return jsonschema.For[Problem](nil)
	case RunView, RunList, map[string]any:
		return map[string]any{"type": "object"}, nil
	default:
		return nil, fmt.Errorf("no schema for %T", v)
	}
}
