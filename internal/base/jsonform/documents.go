package jsonform

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"reflect"
	"strings"

	utiljson "k8s.io/apimachinery/pkg/util/json"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/yaml"

	"github.com/kates-go/kates/internal/base/asjson"
)

// eachDocument calls visit once for each document that is not blank, with its content, or with the
// error that it cannot be read. The content is nil if the document has only comments.
func eachDocument(text string, visit func(map[string]any, error)) {
	for _, document := range documents(text) {
		if len(bytes.TrimSpace(document)) == 0 {
			continue
		}
		contents, err := contentsOf(document)
		for _, content := range contents {
			visit(content, nil)
		}
		if err != nil {
			visit(nil, err)
		}
	}
}

const byteOrderMark = "\ufeff"

// documents splits a stream of YAML documents at the lines that begin with "---" or "...". No
// line inside a document can begin so. Text after the "---" belongs to the document.
//
// It is written by hand because k8s.io/apimachinery/pkg/util/yaml refuses text after "---", does
// not know "...", and so loses the documents behind it.
func documents(text string) (all [][]byte) {
	var now []byte
	directives, content := false, false // whether the document has them
	next := func() {
		all, now = append(all, now), nil
		directives, content = false, false
	}
	for line := range strings.Lines(text) {
		line = strings.TrimPrefix(line, byteOrderMark)
		if rest, begins := marker(line, "---"); begins {
			switch {
			case directives && !content: // %YAML 1.2 belongs to the document that begins here
				now = append(now, "--- "...)
			default:
				next()
			}
			now, content = append(now, rest...), true
			continue
		}
		if _, ends := marker(line, "..."); ends {
			next()
			continue
		}
		now = append(now, line...)
		switch trimmed := strings.TrimSpace(line); {
		case strings.HasPrefix(line, "%") && !content:
			directives = true
		case trimmed != "" && trimmed[0] != '#':
			content = true
		}
	}
	next()
	return all
}

// marker reports whether a line begins with a document marker, and returns the rest of the line.
func marker(line, mark string) (rest string, ok bool) {
	rest, ok = strings.CutPrefix(line, mark)
	trimmed := strings.TrimLeft(rest, " \t")
	return trimmed, ok && (trimmed != rest || strings.TrimSpace(rest) == "")
}

// contentsOf returns the objects of one document. A JSON document may have several. The content
// of a document that has only comments is nil.
func contentsOf(document []byte) (contents []map[string]any, err error) {
	if !utilyaml.IsJSONBuffer(withoutComments(document)) {
		content, err := yamlObject(document)
		if err != nil {
			return nil, err
		}
		return []map[string]any{content}, nil
	}
	decoder := json.NewDecoder(bytes.NewReader(document))
	for {
		var raw json.RawMessage
		if err := decoder.Decode(&raw); errors.Is(err, io.EOF) {
			return contents, nil
		} else if err != nil && len(contents) == 0 {
			return flowObject(document)
		} else if err != nil {
			return contents, errors.New("what is behind a JSON object is not another")
		}
		var content map[string]any
		if err := utiljson.Unmarshal(raw, &content); err != nil {
			return contents, errors.New("it is not an object")
		}
		contents = append(contents, content)
	}
}

// withoutComments cuts the comment lines that a document begins with.
func withoutComments(document []byte) []byte {
	for {
		document = bytes.TrimSpace(document)
		if len(document) == 0 || document[0] != '#' {
			return document
		}
		_, document, _ = bytes.Cut(document, []byte("\n"))
	}
}

// flowObject returns the content of a YAML document that begins with "{" and is not JSON. The
// YAML reader stops at the "}" and ignores the rest. So the document is read as the one element
// of a list, where anything after it is an error.
func flowObject(document []byte) ([]map[string]any, error) {
	elements, err := fromYAML(append(append([]byte("[\n"), document...), "\n]"...))
	if err != nil {
		return nil, err
	}
	if list, ok := elements.([]any); ok && len(list) == 1 {
		if content, ok := list[0].(map[string]any); ok {
			return []map[string]any{content}, nil
		}
	}
	return nil, errors.New("it is not one object")
}

// yamlObject returns the content of one YAML document, nil if it has none.
func yamlObject(document []byte) (map[string]any, error) {
	content, err := fromYAML(document)
	if err != nil {
		return nil, err
	}
	switch c := content.(type) {
	case nil:
		return nil, nil
	case map[string]any:
		return c, nil
	}
	return nil, errors.New("it is not an object")
}

func fromYAML(document []byte) (content any, err error) {
	data, err := yaml.YAMLToJSON(document)
	if err != nil {
		return nil, withoutQuotes(err)
	}
	if err := utiljson.Unmarshal(data, &content); err != nil {
		return nil, errors.New("it cannot be written as JSON")
	}
	return content, nil
}

// withoutQuotes returns an error of the YAML reader without text of the document, which may be a
// Secret. Errors that name a line quote nothing.
func withoutQuotes(err error) error {
	text := err.Error()
	for part, instead := range map[string]string{
		"unknown anchor": "yaml: an alias names no anchor",
		"map key":        "yaml: a key is not a string",
		"cannot decode":  "yaml: a value is not what its tag says",
	} {
		if strings.Contains(text, part) {
			return errors.New(instead)
		}
	}
	for _, constant := range []string{
		"yaml: line ", "yaml: document contains excessive aliasing", "yaml: map merge requires", "yaml: !!binary",
	} {
		if strings.HasPrefix(text, constant) {
			return err
		}
	}
	return errors.New("yaml: it cannot be read (what is wrong would quote it)")
}

// undecoded reduces the error that content does not decode into a t to the place and the forms,
// since its text may quote a value.
func undecoded(content map[string]any, t reflect.Type, err error) error {
	if misfit := asjson.MisfitOf(content, t); misfit != nil {
		return misfit
	}
	return withoutContent(err)
}

// withoutContent reduces a decoding error to the field and the expected type, since its text may
// quote a value.
func withoutContent(err error) error {
	if mismatch := (*json.UnmarshalTypeError)(nil); errors.As(err, &mismatch) {
		return fmt.Errorf("field %q: want %v", mismatch.Field, mismatch.Type)
	}
	if corrupt := base64.CorruptInputError(0); errors.As(err, &corrupt) {
		return corrupt
	}
	return errors.New("a value does not fit its field (what is wrong would quote it)")
}
