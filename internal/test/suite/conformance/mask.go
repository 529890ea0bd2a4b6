package conformance

import (
	"fmt"
	"maps"
	"math/big"
	"regexp"
	"slices"
	"sort"
	"strings"
)

var (
	uids  = regexp.MustCompile(`[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}`)
	times = regexp.MustCompile(`\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z`)
)

// mask knows what differs between two runs of a case. First it sees all answers, then it masks
// them.
type mask struct {
	script   string // what is in it is not masked
	names    []string
	uids     map[string]string
	versions map[string]*big.Int
	sorted   []*big.Int
}

func newMask(c Case, namespace string) *mask {
	text := c.text
	for _, name := range slices.Sorted(maps.Keys(c.lets)) {
		text += c.lets[name]
	}
	return &mask{script: text, names: []string{namespace, "$ns"}, uids: map[string]string{}, versions: map[string]*big.Int{}}
}

// see notes the UIDs, versions and generated names of an answer.
func (m *mask) see(v any, bookmark bool) {
	switch v := v.(type) {
	case string:
		for _, uid := range uids.FindAllString(v, -1) {
			if m.uids[uid] == "" && !strings.Contains(m.script, uid) {
				m.uids[uid] = fmt.Sprintf("u%d", len(m.uids)+1)
			}
		}
	case []any:
		for _, each := range v {
			m.see(each, false)
		}
	case map[string]any:
		m.seeObject(v, bookmark)
		for _, key := range slices.Sorted(maps.Keys(v)) {
			m.see(v[key], false)
		}
	}
}

func (m *mask) seeObject(object map[string]any, bookmark bool) {
	metadata, _ := object["metadata"].(map[string]any)
	if version := versionOf(metadata); version != nil && !bookmark && !isList(object) {
		m.versions[version.String()] = version
	}
	prefix, _ := metadata["generateName"].(string)
	name, _ := metadata["name"].(string)
	if prefix != "" && len(name) == len(prefix)+5 && strings.HasPrefix(name, prefix) && !slices.Contains(m.names, name) {
		m.names = append(m.names, name, fmt.Sprintf("%s<%d>", prefix, len(m.names)/2))
	}
}

func isList(object map[string]any) bool {
	_, is := object["items"]
	return is
}

// versionOf is the resource version in metadata. There is none in 0.
func versionOf(metadata map[string]any) *big.Int {
	text, _ := metadata["resourceVersion"].(string)
	version, is := new(big.Int).SetString(text, 10)
	if !is || version.Sign() == 0 {
		return nil
	}
	return version
}

// sort puts the versions in order. All answers have been seen.
func (m *mask) sort() {
	m.sorted = slices.SortedFunc(maps.Values(m.versions), (*big.Int).Cmp)
}

// version is the name of an object's version, or of the newest that a list's contains.
func (m *mask) version(v *big.Int, ofObject bool) string {
	at := sort.Search(len(m.sorted), func(i int) bool { return m.sorted[i].Cmp(v) > 0 })
	if ofObject {
		return fmt.Sprintf("v%d", at)
	}
	return fmt.Sprintf(">=v%d", at)
}

// masked is an answer without what differs between two runs. It shares nothing with v.
func (m *mask) masked(v any, bookmark bool) any {
	switch v := v.(type) {
	case string:
		return m.text(v)
	case []any:
		out := make([]any, len(v))
		for i, each := range v {
			out[i] = m.masked(each, false)
		}
		return out
	case map[string]any:
		out := make(map[string]any, len(v))
		for key, value := range v {
			out[m.text(key)] = m.masked(value, false)
		}
		m.maskMetadata(v, out, bookmark)
		return out
	}
	return v
}

func (m *mask) maskMetadata(object, out map[string]any, bookmark bool) {
	metadata, _ := out["metadata"].(map[string]any)
	if metadata == nil {
		return
	}
	in, _ := object["metadata"].(map[string]any)
	if version := versionOf(in); version != nil {
		metadata["resourceVersion"] = m.version(version, !bookmark && !isList(object))
	}
	if token, _ := metadata["continue"].(string); token != "" {
		metadata["continue"] = "(a token)"
	}
	if entries, is := metadata["managedFields"].([]any); is {
		metadata["managedFields"] = managed(entries)
	}
}

func (m *mask) text(s string) string {
	s = uids.ReplaceAllStringFunc(s, func(uid string) string {
		if name := m.uids[uid]; name != "" {
			return name
		}
		return uid
	})
	s = times.ReplaceAllStringFunc(s, func(t string) string {
		if strings.Contains(m.script, t) {
			return t
		}
		return "t"
	})
	return strings.NewReplacer(m.names...).Replace(s)
}

// managed is the short form of managed fields: "manager operation version subresource {fields}".
// The server sorts them by their times, in seconds, so here they have an order of their own.
func managed(entries []any) any {
	out := make([]string, len(entries))
	for i, e := range entries {
		entry, is := e.(map[string]any)
		if !is {
			return entries
		}
		text := fmt.Sprintf("%v %v %v", entry["manager"], entry["operation"], entry["apiVersion"])
		if entry["subresource"] != nil {
			text += fmt.Sprintf(" of %v", entry["subresource"])
		}
		if entry["fieldsType"] != "FieldsV1" {
			text += fmt.Sprintf(" as %v", entry["fieldsType"])
		}
		if entry["time"] != "t" {
			text += fmt.Sprintf(" at %v", entry["time"])
		}
		out[i] = text + " " + fields(entry["fieldsV1"])
	}
	slices.Sort(out)
	return out
}

// fields is a set of fields in a form that is short.
func fields(v any) string {
	set, _ := v.(map[string]any)
	parts := make([]string, 0, len(set))
	for _, key := range slices.Sorted(maps.Keys(set)) {
		part := strings.TrimPrefix(key, "f:")
		if inner, _ := set[key].(map[string]any); len(inner) > 0 {
			part += fields(inner)
		}
		parts = append(parts, part)
	}
	return "{" + strings.Join(parts, " ") + "}"
}
