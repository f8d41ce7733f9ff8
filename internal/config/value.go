package config

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/dustin/go-humanize"
)

// set stores v, as a TOML or JSON decoder gives it, in the key's field of c.
// The error says what was expected; the caller adds where.
func set(c *Config, k Key, v any) error {
	f := reflect.ValueOf(c).Elem().Field(k.field)
	nv, err := convert(f.Type(), k, v)
	if err != nil {
		return err
	}
	f.Set(nv)
	return nil
}

// setText stores a value written as text: an environment variable or a flag.
func setText(c *Config, k Key, text string) error {
	t := configType.Field(k.field).Type
	if t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	var v any = text
	switch {
	case t == durationType:
	case t.Kind() == reflect.Bool:
		b, err := strconv.ParseBool(strings.ToLower(text))
		if err != nil {
			return expected(k, text)
		}
		v = b
	case t.Kind() == reflect.Int && k.Unit != "bytes":
		n, err := strconv.ParseInt(text, 10, 64)
		if err != nil {
			return expected(k, text)
		}
		v = n
	case t.Kind() == reflect.Float32 || t.Kind() == reflect.Float64:
		n, err := strconv.ParseFloat(text, 64)
		if err != nil {
			return expected(k, text)
		}
		v = n
	case t.Kind() == reflect.Slice:
		items := []any{}
		for s := range strings.SplitSeq(text, ",") {
			if s = strings.TrimSpace(s); s != "" {
				items = append(items, s)
			}
		}
		v = items
	case t.Kind() == reflect.Map:
		m := map[string]any{}
		if err := json.Unmarshal([]byte(text), &m); err != nil {
			return errors.New("expected a JSON object like {\"name\": \"value\"}")
		}
		v = m
	}
	return set(c, k, v)
}

func convert(t reflect.Type, k Key, v any) (reflect.Value, error) {
	out := reflect.New(t).Elem()
	if t == durationType {
		d, err := toDuration(v)
		if err != nil {
			return out, expected(k, v)
		}
		if lo, err := time.ParseDuration(k.Min); err == nil && d < lo || d < 0 {
			return out, fmt.Errorf("expected a duration of at least %s, got %v", k.Min, v)
		}
		out.SetInt(int64(d))
		return out, nil
	}
	switch t.Kind() {
	case reflect.Pointer:
		e, err := convert(t.Elem(), k, v)
		if err != nil {
			return out, err
		}
		p := reflect.New(t.Elem())
		p.Elem().Set(e)
		return p, nil
	case reflect.String:
		s, ok := v.(string)
		if !ok {
			return out, expected(k, v)
		}
		if err := inEnum(k, s); err != nil {
			return out, err
		}
		out.SetString(s)
	case reflect.Bool:
		b, ok := v.(bool)
		if !ok {
			return out, expected(k, v)
		}
		out.SetBool(b)
	case reflect.Int:
		n, ok := toInt(v, k.Unit == "bytes")
		if !ok {
			return out, expected(k, v)
		}
		if err := inRange(k, float64(n)); err != nil {
			return out, err
		}
		out.SetInt(n)
	case reflect.Float32, reflect.Float64:
		n, ok := toFloat(v)
		if !ok {
			return out, expected(k, v)
		}
		if err := inRange(k, n); err != nil {
			return out, err
		}
		out.SetFloat(n)
	case reflect.Slice:
		items, ok := v.([]any)
		if !ok {
			return out, expected(k, v)
		}
		out = reflect.MakeSlice(t, 0, len(items))
		for _, it := range items {
			s, ok := it.(string)
			if !ok {
				return out, expected(k, v)
			}
			if err := inEnum(k, s); err != nil {
				return out, err
			}
			e := reflect.New(t.Elem()).Elem()
			e.SetString(s)
			out = reflect.Append(out, e)
		}
	case reflect.Map:
		m, ok := v.(map[string]any)
		if !ok {
			return out, expected(k, v)
		}
		out = reflect.MakeMap(t)
		for name, item := range m {
			if t.Elem().Kind() == reflect.String {
				s, ok := item.(string)
				if !ok {
					return out, fmt.Errorf("expected text for %q, got %v", name, item)
				}
				item = s
			}
			out.SetMapIndex(reflect.ValueOf(name), reflect.ValueOf(&item).Elem().Elem())
		}
	}
	return out, nil
}

func toDuration(v any) (time.Duration, error) {
	switch x := v.(type) {
	case string:
		if n, err := strconv.ParseFloat(x, 64); err == nil {
			return seconds(n)
		}
		return time.ParseDuration(x)
	case int64:
		return seconds(float64(x))
	case float64:
		return seconds(x)
	}
	return 0, errors.New("no duration")
}

func seconds(n float64) (time.Duration, error) {
	if math.IsNaN(n) || n < 0 || n > 1e9 {
		return 0, errors.New("out of range")
	}
	return time.Duration(n * float64(time.Second)), nil
}

func toInt(v any, size bool) (int64, bool) {
	switch x := v.(type) {
	case int64:
		return x, true
	case float64:
		return int64(x), x == math.Trunc(x) && math.Abs(x) < 1<<53
	case string:
		if size {
			n, err := humanize.ParseBytes(x)
			return int64(n), err == nil && n < 1<<53
		}
	}
	return 0, false
}

func toFloat(v any) (float64, bool) {
	switch x := v.(type) {
	case int64:
		return float64(x), true
	case float64:
		return x, !math.IsNaN(x) && !math.IsInf(x, 0)
	}
	return 0, false
}

func inEnum(k Key, s string) error {
	if k.Rules { // what stands behind the word is for those who read the rules
		s, _, _ = strings.Cut(strings.TrimSpace(s), " ")
		if strings.HasPrefix(s, "tool:") {
			return nil
		}
	}
	if len(k.Enum) == 0 || slices.Contains(k.Enum, s) {
		return nil
	}
	return fmt.Errorf("%q is not one of %s", s, strings.Join(k.Enum, ", "))
}

func inRange(k Key, n float64) error {
	if lo, err := strconv.ParseFloat(k.Min, 64); err == nil && n < lo {
		return fmt.Errorf("expected at least %s, got %v", k.Min, n)
	}
	if hi, err := strconv.ParseFloat(k.Max, 64); err == nil && n > hi {
		return fmt.Errorf("expected at most %s, got %v", k.Max, n)
	}
	return nil
}

func expected(k Key, got any) error {
	what := map[string]string{
		"duration":      `a duration like "90s" or "2m"`,
		"true or false": "true or false",
		"size":          `a number of bytes, or a size like "24KiB"`,
		"whole number":  "a whole number",
		"number":        "a number",
		"list":          `a list like ["bash", "delete"]`,
		"table":         "a table",
		"text":          "text in quotes",
	}[k.Type]
	return fmt.Errorf("expected %s, got %s", what, describe(got))
}

// describe words a wrong value without quoting more than a little of it.
func describe(v any) string {
	switch x := v.(type) {
	case string:
		if len(x) > 40 {
			x = x[:40] + "…"
		}
		return strconv.Quote(x)
	case []any:
		return "a list"
	case map[string]any:
		return "a table"
	case nil:
		return "nothing"
	}
	return fmt.Sprint(v)
}
