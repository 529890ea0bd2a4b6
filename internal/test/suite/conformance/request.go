package conformance

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	utiljson "k8s.io/apimachinery/pkg/util/json"
	"sigs.k8s.io/yaml"
)

// agent is the program's name, from which the server makes the name of a field manager.
const agent = "conformance/v1"

const (
	asJSON     = "application/json"
	asProtobuf = "application/vnd.kubernetes.protobuf"
)

var patchTypes = map[string]string{
	"MERGE":     "application/merge-patch+json",
	"JSON":      "application/json-patch+json",
	"STRATEGIC": "application/strategic-merge-patch+json",
	"APPLY":     "application/apply-patch+yaml",
}

// request is one that is ready to be sent.
type request struct {
	method, target string
	header         http.Header
	body           []byte
}

// request makes that of a step.
func (r *run) request(s *step) (request, error) {
	q := request{method: s.verb, header: http.Header{}}
	if contentType, is := patchTypes[s.verb]; is {
		q.method = http.MethodPatch
		q.header.Set("Content-Type", contentType)
	}
	var err error
	if q.target, err = r.target(s.target); err != nil {
		return q, err
	}
	if s.has("protobuf") {
		q.header.Set("Accept", asProtobuf)
	}
	for _, m := range s.modifiers {
		if m, err = r.expand(m); err != nil {
			return q, err
		}
		if name, value, is := strings.Cut(m, ": "); is {
			q.header.Set(name, value)
		}
	}
	return q, r.setBody(s, &q)
}

// setBody puts the step's body into its request.
func (r *run) setBody(s *step, q *request) error {
	if s.body == nil {
		return nil
	}
	text, err := r.expand(strings.Join(s.body, "\n"))
	if err != nil {
		return err
	}
	q.body = []byte(text)
	if s.has("raw") {
		return nil
	}
	if q.body, err = yaml.YAMLToJSON(q.body); err != nil {
		return err
	}
	if s.has("protobuf") && q.method != http.MethodPatch {
		q.header.Set("Content-Type", asProtobuf)
		q.body, err = toProtobuf(q.body)
	}
	return err
}

// target is a path and its query, escaped.
func (r *run) target(text string) (string, error) {
	text, err := r.expand(text)
	if err != nil {
		return "", err
	}
	path, query, has := strings.Cut(text, "?")
	if !has {
		return path, nil
	}
	var pairs []string
	for pair := range strings.SplitSeq(query, "&") {
		name, value, _ := strings.Cut(pair, "=")
		pairs = append(pairs, url.QueryEscape(name)+"="+url.QueryEscape(value))
	}
	return path + "?" + strings.Join(pairs, "&"), nil
}

// send sends a request.
func (r *run) send(ctx context.Context, q request) (*http.Response, error) {
	to := strings.TrimSuffix(r.base.String(), "/") + q.target
	made, err := http.NewRequestWithContext(ctx, q.method, to, bytes.NewReader(q.body))
	if err != nil {
		return nil, err
	}
	if q.body == nil {
		made.Body, made.ContentLength = nil, 0
	}
	made.Header.Set("Accept", asJSON)
	made.Header.Set("User-Agent", agent)
	if q.body != nil {
		made.Header.Set("Content-Type", asJSON)
	}
	for name, values := range q.header {
		made.Header[name] = values
	}
	return r.client.Do(made)
}

// ask sends a request and reads its answer.
func (r *run) ask(ctx context.Context, q request) (entry, error) {
	response, err := r.send(ctx, q)
	if err != nil {
		return entry{}, err
	}
	defer func() { _ = response.Body.Close() }()
	content, err := io.ReadAll(response.Body)
	if err != nil {
		return entry{}, err
	}
	return decoded(response, content)
}

// decoded is what an answer says.
func decoded(response *http.Response, content []byte) (e entry, err error) {
	e.code = response.StatusCode
	for _, w := range response.Header.Values("Warning") {
		e.header = append(e.header, "Warning: "+w)
	}
	if allow := response.Header.Get("Allow"); allow != "" {
		e.header = append(e.header, "Allow: "+allow)
	}
	contentType, _, _ := mime.ParseMediaType(response.Header.Get("Content-Type"))
	switch {
	case contentType == asJSON && len(content) > 0:
		err = utiljson.Unmarshal(content, &e.body)
	case contentType == asProtobuf:
		e.body, err = fromProtobuf(content)
		e.header = append(e.header, "Content-Type: "+contentType)
	case len(content) > 0:
		e.body = strings.TrimSpace(string(content))
		e.header = append(e.header, "Content-Type: "+contentType)
	}
	if err != nil {
		err = fmt.Errorf("decode %q: %w", content, err)
	}
	return e, err
}

// is says whether an answer is that which a step waits for: a code, and perhaps a text in the
// body.
func (e entry) is(wanted []string) bool {
	if strconv.Itoa(e.code) != wanted[0] {
		return false
	}
	return len(wanted) == 1 || strings.Contains(flow(e.body), strings.Join(wanted[1:], " "))
}
