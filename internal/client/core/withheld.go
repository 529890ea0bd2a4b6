package core

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/kates-go/kates/internal/base/secret"
)

// withheld stands for a value of a Secret in the text of an error.
const withheld = "(withheld)"

// shortestValue is the length of the shortest value of a Secret that is withheld. A shorter one is
// part of many words.
const shortestValue = 4

// discreetly returns an error of a request about a Secret without the Secret's content. Servers
// and webhooks may quote what they were sent. An error of the server keeps its type, its reason
// and its code.
func (o *Subject) discreetly(err error) error {
	if !secret.Resource(o.Resource.Group, o.Resource.Resource) {
		return err
	}
	hide := o.hider()
	if text := err.Error(); hide.Replace(text) != text {
		hidden := &discreetError{text: hide.Replace(text), is: func(target error) bool { return errors.Is(err, target) }}
		var answer *apierrors.StatusError
		if errors.As(err, &answer) {
			status := answer.ErrStatus.DeepCopy()
			status.Message = hide.Replace(status.Message)
			if status.Details != nil {
				for i := range status.Details.Causes {
					status.Details.Causes[i].Message = hide.Replace(status.Details.Causes[i].Message)
				}
			}
			hidden.answer = &apierrors.StatusError{ErrStatus: *status}
		}
		return hidden
	}
	return err
}

// discreetError is an error whose text had the content of a Secret.
type discreetError struct {
	text   string
	answer error // the server's, or nil
	// is compares what the error wraps: a function, so that nothing that prints the error prints
	// the text before.
	is func(target error) bool
}

func (e *discreetError) Error() string { return e.text }

func (e *discreetError) Unwrap() error { return e.answer }

func (e *discreetError) Is(target error) bool { return e.is(target) }

// hider replaces all values of the Secret, and of the patch of it that was sent: as they are,
// quoted as Go and as JSON do, and in base64.
func (o *Subject) hider() *strings.Replacer {
	values := secretValues("", o.Object)
	var patch any
	if json.Unmarshal(o.Sent, &patch) == nil {
		values = append(values, secretValues("", patch)...)
	}
	var all []string
	for _, value := range values {
		if len(value) < shortestValue {
			continue
		}
		quoted, encoded := strings.Trim(fmt.Sprintf("%q", value), `"`), base64.StdEncoding.EncodeToString([]byte(value))
		asJSON, _ := json.Marshal(value) // a text has a form in JSON
		all = append(all, value, quoted, encoded, strings.Trim(string(asJSON), `"`))
	}
	slices.SortFunc(all, func(a, b string) int { return len(b) - len(a) }) // a whole before its parts
	var pairs []string
	for _, form := range all {
		pairs = append(pairs, form, withheld)
	}
	return strings.NewReplacer(pairs...)
}

// secretValues returns the values of data and stringData in an object, a merge patch, or a JSON
// patch.
func secretValues(at string, content any) (values []string) {
	switch v := content.(type) {
	case map[string]any:
		if path, is := v["path"].(string); is && at == "" { // an operation of a JSON patch
			return secretValues(strings.TrimPrefix(path, "/"), v["value"])
		}
		for name, value := range v {
			values = append(values, secretValues(strings.TrimPrefix(at+"/"+name, "/"), value)...)
		}
	case []any:
		for _, value := range v {
			values = append(values, secretValues(at, value)...)
		}
	case string:
		switch section, _, _ := strings.Cut(at, "/"); section {
		case "stringData":
			values = append(values, v)
		case "data":
			values = append(values, v)
			if decoded, err := base64.StdEncoding.DecodeString(v); err == nil {
				values = append(values, string(decoded))
			}
		}
	}
	return values
}
