package recording

import (
	"net/http"
	"net/url"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
)

// verb is what a request asks for.
type verb int

const (
	other    verb = iota // writes, logs, proxies and so on: nothing that is recorded
	listing              // a list, or a page of one
	watching             // a watch, or a streamed list
	getting              // one object
	asking               // discovery, OpenAPI, the version, health
)

// target is a request, read as the API server does.
type target struct {
	verb     verb
	resource string
}

// targetOf reads the method, the path and the query of a request. A path before /api or /apis
// belongs to a proxy.
func targetOf(method, path string, query url.Values) target {
	if method != http.MethodGet {
		return target{}
	}
	parts := strings.FieldsFunc(path, func(c rune) bool { return c == '/' })
	root := slices.IndexFunc(parts, func(s string) bool { return s == "api" || s == "apis" })
	if root > 0 && parts[0] == "openapi" {
		root = -1 // /openapi/v3/apis/apps/v1
	}
	if root < 0 {
		return target{verb: asking}
	}
	prefix := 2 // api, version
	if parts[root] == "apis" {
		prefix = 3
	}
	if parts = parts[root:]; len(parts) <= prefix {
		return target{verb: asking}
	}
	parts = parts[prefix:]
	if parts[0] == "namespaces" && len(parts) > 2 && parts[2] != "status" && parts[2] != "finalize" {
		parts = parts[2:]
	}
	switch {
	case parts[0] == "watch" && len(parts) > 1:
		return target{} // the old form of a watch: nobody uses it
	case len(parts) == 1 && isTrue(query, "watch"):
		return target{watching, parts[0]}
	case len(parts) == 1:
		return target{listing, parts[0]}
	case len(parts) == 2:
		return target{getting, parts[0]}
	}
	return target{}
}

// isTrue reads a flag as the API server does: everything but "false" and "0" is true.
func isTrue(query url.Values, flag string) bool {
	value := strings.ToLower(query.Get(flag))
	return query.Has(flag) && value != "false" && value != "0"
}

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
