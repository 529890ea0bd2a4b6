package until

import (
	"bytes"
	"errors"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/util/jsonpath"
)

// hasField judges a field: "{.status.phase}=Running", or "{.status.phase}" for any value. The
// braces, and the dot behind them, may be left out.
func hasField(text string) (func(*unstructured.Unstructured) string, error) {
	path, value, whatever, err := split(text)
	if err != nil {
		return nil, err
	}
	// One is parsed here to see whether it can be; each judgement has its own, since they keep
	// state.
	if _, err := parse(path); err != nil {
		return nil, err
	}
	return func(o *unstructured.Unstructured) string {
		got, found, err := read(path, o)
		switch {
		case err != nil:
			return err.Error()
		case !found:
			return path + " is not there"
		case whatever || got == value:
			return ""
		case IsSecret(o):
			return path + " has another value"
		}
		return fmt.Sprintf("%s=%s", path, got)
	}, nil
}

// split cuts a path from the value behind it.
func split(text string) (path, value string, whatever bool, err error) {
	if strings.HasPrefix(text, "{") {
		end := closing(text)
		if end < 0 {
			return "", "", false, errPath
		}
		path, text = text[:end+1], text[end+1:]
	} else {
		path, _, _ = strings.Cut(text, "=")
		text = text[len(path):]
		if path == "" {
			return "", "", false, errors.New("it has no path")
		}
		path = "{." + strings.TrimPrefix(path, ".") + "}"
	}
	if text == "" {
		return path, "", true, nil
	}
	value, ok := strings.CutPrefix(text, "=")
	value = strings.Trim(value, `'"`)
	switch {
	case !ok:
		return "", "", false, errPath
	case value == "":
		return "", "", false, errors.New("the value behind = is empty")
	}
	return path, value, false, nil
}

// closing is where the first brace is closed, outside of quotes; below 0 if it is not.
func closing(text string) int {
	depth, quote := 0, rune(0)
	for i, r := range text {
		switch {
		case quote != 0:
			if r == quote {
				quote = 0
			}
		case r == '\'' || r == '"':
			quote = r
		case r == '{':
			depth++
		case r == '}':
			if depth--; depth == 0 {
				return i
			}
		}
	}
	return -1
}

func parse(path string) (*jsonpath.JSONPath, error) {
	p := jsonpath.New("for").AllowMissingKeys(true)
	if err := p.Parse(path); err != nil {
		return nil, fmt.Errorf("the path %s: %w", path, err)
	}
	return p, nil
}

// read returns the value of a field as kubectl compares it: one value, printed.
func read(path string, o *unstructured.Unstructured) (value string, found bool, err error) {
	p, err := parse(path)
	if err != nil {
		return "", false, err
	}
	all, err := p.FindResults(o.Object)
	if err != nil {
		return "", false, fmt.Errorf("%s cannot be read there", path)
	}
	if len(all) == 0 || len(all[0]) == 0 {
		return "", false, nil
	}
	if len(all) > 1 || len(all[0]) > 1 {
		return "", false, fmt.Errorf("%s has several values: a path to one is needed", path)
	}
	if one := all[0][0]; !one.IsValid() || (one.CanInterface() && one.Interface() == nil) {
		return "", false, nil
	}
	var text bytes.Buffer
	if err := p.PrintResults(&text, all[0]); err != nil {
		return "", false, fmt.Errorf("%s cannot be printed", path)
	}
	return text.String(), true, nil
}
