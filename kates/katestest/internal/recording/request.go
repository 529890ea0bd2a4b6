package recording

import (
	"net/http"
	"net/url"
	"strings"

	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/kates-go/kates/internal/client/apipath"
)

// verb is what a request asks for.
type verb int

const (
	other    verb = iota // writes, logs, proxies and so on: nothing that is recorded
	listing              // a list, or a page of one
	watching             // a watch, or a streamed list
	getting              // one object
	asking               // discovery, OpenAPI, the version, health
	refusing             // an error: a Status, or a text
	unclear              // none of the API's paths, or not below the server's: nobody knows what is there
)

// target is a request, read as the API server does.
type target struct {
	verb     verb
	resource string
}

// targetOf reads the method, the path and the query of a request to a server with a base.
func targetOf(method, path string, query url.Values, base string) target {
	if method != http.MethodGet {
		return target{}
	}
	p := apipath.Parse(path, base)
	switch {
	case p.Sort == apipath.Unknown, p.Doubtful():
		return target{verb: unclear}
	case p.Sort == apipath.General:
		return target{verb: asking}
	case p.Sort == apipath.OldWatch:
		return target{} // nobody uses it
	}
	switch p.Verb(method, query) {
	case "watch":
		return target{watching, p.Resource}
	case "list":
		return target{listing, p.Resource}
	}
	if p.Subresource != "" {
		return target{}
	}
	return target{getting, p.Resource}
}

// succeeded reports whether a status is that of an answer, and not of an error. Proxies change 200.
func succeeded(status int) bool { return status >= 200 && status < 300 }

// isTrue reads a flag as the API server does.
func isTrue(query url.Values, flag string) bool { return apipath.IsTrue(query, flag) }

// key is what a list and its watches have in common.
type key struct{ path, labels, fields, shards, form string }

// keyOf returns the key of a list or a watch. Selectors that mean the same are the same.
func keyOf(path string, query url.Values, form string) key {
	k := key{
		path: strings.TrimSuffix(path, "/"), form: form, shards: query.Get("shardSelector"),
		labels: query.Get("labelSelector"), fields: query.Get("fieldSelector"),
	}
	if s, err := labels.Parse(k.labels); err == nil {
		k.labels = s.String()
	}
	if s, err := fields.ParseSelector(k.fields); err == nil {
		k.fields = s.String()
	}
	return k
}

// String says which objects these are.
func (k key) String() string {
	query := url.Values{}
	for name, value := range map[string]string{
		"labelSelector": k.labels, "fieldSelector": k.fields, "shardSelector": k.shards, "as": k.form,
	} {
		if value != "" {
			query.Set(name, value)
		}
	}
	if len(query) == 0 {
		return k.path
	}
	return k.path + "?" + query.Encode()
}

// clause is one of the media types that a client accepts, or that of an answer.
type clause struct {
	media string // "application/json", "*/*"
	form  string // of the objects: "" is whole ones, "PartialObjectMetadata" is their metadata
}

// clausesOf reads an Accept header, or a Content-Type. The form of a list and of its items is the
// same.
func clausesOf(accept string) []clause {
	var all []clause
	for part := range strings.SplitSeq(accept, ",") {
		params := strings.Split(part, ";")
		c := clause{media: strings.ToLower(strings.TrimSpace(params[0]))}
		for _, p := range params[1:] {
			if name, value, _ := strings.Cut(strings.TrimSpace(p), "="); name == "as" {
				c.form = strings.TrimSuffix(value, "List")
			}
		}
		if c.media != "" {
			all = append(all, c)
		}
	}
	if len(all) == 0 {
		return []clause{{media: "*/*"}}
	}
	return all
}

const (
	mediaJSON     = "application/json"
	mediaProtobuf = "application/vnd.kubernetes.protobuf"
	mediaAny      = "*/*"

	formMetadata = "PartialObjectMetadata"
	formTable    = "Table"
)
