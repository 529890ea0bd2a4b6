package conformance

import (
	"encoding/json"
	"fmt"
	"math/big"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

var (
	// reference is $name, perhaps with a path, perhaps with a number that is added to it.
	reference = regexp.MustCompile(`\$([a-zA-Z]\w*)((?:\.\w+)*)([+-]\d+)?`)
	letters   = regexp.MustCompile(`^x(\d+)$`)
	// directives are keys of patches, and of schemas.
	directives = []string{"patch", "retainKeys", "setElementOrder", "deleteFromPrimitiveList", "ref"}
)

// expand replaces what begins with $.
func (r *run) expand(text string) (string, error) {
	var failed error
	for range 5 { // texts of "let" have names, too
		done := reference.ReplaceAllStringFunc(text, func(match string) string {
			m := reference.FindStringSubmatch(match)
			value, err := r.value(m[1], m[2], m[3])
			if err != nil {
				failed = err
			}
			return value
		})
		if done == text || failed != nil {
			return done, failed
		}
		text = done
	}
	return text, nil
}

// value is the text that a reference stands for.
func (r *run) value(name, path, number string) (string, error) {
	fixed := map[string]string{"ns": r.namespace, "each": r.each}
	if text, has := fixed[name]; has && text != "" {
		return text + path + number, nil
	}
	if text, has := r.script.lets[name]; has {
		return text + path + number, nil
	}
	if m := letters.FindStringSubmatch(name); m != nil {
		n, err := strconv.Atoi(m[1])
		return strings.Repeat("x", n) + path + number, err
	}
	if slices.Contains(directives, name) {
		return "$" + name + path + number, nil
	}
	answer, has := r.answers[name]
	if !has && !r.script.lenient {
		return "", fmt.Errorf("$%s is nothing", name)
	}
	text, err := field(answer, path)
	if err != nil && r.script.lenient {
		return missing[strings.TrimPrefix(path, ".")], nil
	}
	if err != nil || number == "" {
		return text, err
	}
	return added(text, number)
}

// added is a version with a number added to it.
func added(version, number string) (string, error) {
	a, isNumber := new(big.Int).SetString(version, 10)
	b, _ := new(big.Int).SetString(strings.TrimPrefix(number, "+"), 10)
	if !isNumber {
		return "", fmt.Errorf("%q is no number", version)
	}
	return a.Add(a, b).String(), nil
}

// missing are the texts that stand for fields that an answer does not have, in a lenient script.
var missing = map[string]string{"rv": "1", "uid": "11111111-2222-3333-4444-555555555555"}

var short = map[string]string{"uid": "metadata.uid", "rv": "metadata.resourceVersion", "continue": "metadata.continue"}

// field is a field of an answer, as text.
func field(answer any, path string) (string, error) {
	path = strings.TrimPrefix(path, ".")
	if long, is := short[path]; is {
		path = long
	}
	at := answer
	for name := range strings.SplitSeq(path, ".") {
		if list, is := at.([]any); is {
			i, err := strconv.Atoi(name)
			if err != nil || i >= len(list) {
				return "", fmt.Errorf("an answer has no %q", path)
			}
			at = list[i]
			continue
		}
		object, _ := at.(map[string]any)
		if at = object[name]; at == nil {
			return "", fmt.Errorf("an answer has no %q", path)
		}
	}
	if text, is := at.(string); is {
		return text, nil
	}
	text, err := json.Marshal(at)
	return string(text), err
}
