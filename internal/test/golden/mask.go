package golden

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/kates-go/kates/internal/base/secret"
)

// Masks stand for what differs from run to run. Equal values have the same mask: two objects of
// one owner show that it is one. The numbers are in the order of the text. The zero value works.
//
//   - A UID is <uid 1>, wherever it is in a text, if it is some object's; and in fields that are
//     named uid.
//   - A field that is named resourceVersion is <version 1>.
//   - A time in a field whose name ends in "time" or "timestamp" is <time>: whether two
//     times are equal is chance.
//   - Managed fields are left out.
//   - The annotation kates.io/applied is <hash>: it depends on UIDs.
//   - Values of Secrets are hashed, and those of their annotations that may be copies of them.
type Masks struct {
	bare  bool // leave out instead, see [Bare]
	state bool // names in place of numbers, see [State]

	known    map[string]string // UIDs of objects: what they are
	uids     map[string]string // by UID
	versions map[string]string // by version
	names    map[string]string // of objects whose name the server has made up
}

// learn finds the UIDs of objects, before anything is masked.
func (m *Masks) learn(tree any) {
	switch t := tree.(type) {
	case hidden:
		m.learn(t.object)
	case []any:
		for _, e := range t {
			m.learn(e)
		}
	case map[string]any:
		metadata, _ := t["metadata"].(map[string]any)
		if uid, _ := metadata["uid"].(string); uid != "" {
			set(&m.known, uid, nameOf(t, metadata))
		}
		if name, made := madeUp(metadata); made && m.state {
			set(&m.names, metadata["name"].(string), name)
		}
		for _, e := range t {
			m.learn(e)
		}
	}
}

// nameOf is what an object is called.
func nameOf(object, metadata map[string]any) string {
	name, made := madeUp(metadata)
	if !made {
		name, _ = metadata["name"].(string)
	}
	namespace, _ := metadata["namespace"].(string)
	return fmt.Sprint(object["kind"], " ", strings.TrimPrefix(namespace+"/"+name, "/"))
}

// madeUp returns what stands for a name that the server has made of generateName.
func madeUp(metadata map[string]any) (string, bool) {
	name, _ := metadata["name"].(string)
	prefix, _ := metadata["generateName"].(string)
	return prefix + "<any>", prefix != "" && strings.HasPrefix(name, prefix)
}

func set[V any](to *map[string]V, key string, value V) {
	if *to == nil {
		*to = map[string]V{}
	}
	(*to)[key] = value
}

// mask returns a masked copy of a tree.
func (m *Masks) mask(tree any) any {
	switch t := tree.(type) {
	case hidden:
		return m.object(hideOwn(t.object))
	case string:
		return m.text(t)
	case []any:
		all := make([]any, len(t))
		for i, e := range t {
			all[i] = m.mask(e)
		}
		return all
	case map[string]any:
		switch core := t["apiVersion"] == "v1" || t["apiVersion"] == nil; {
		case secret.Is(t):
			t = hide(t)
		case core && t["kind"] == "SecretList": // its items have no kinds
			t = maps.Clone(t)
			t["items"] = hideAll(t["items"], reflect.Invalid)
		}
		return m.object(t)
	}
	return tree
}

func (m *Masks) object(content map[string]any) map[string]any {
	if m.state {
		content = withoutCounters(content)
	}
	return m.fields(content)
}

// fields masks by the names of fields, in the order of the text.
func (m *Masks) fields(of map[string]any) map[string]any {
	all := map[string]any{}
	for _, name := range slices.Sorted(maps.Keys(of)) {
		value := of[name]
		s, _ := value.(string)
		switch {
		case name == "managedFields":
		case name == "creationTimestamp" && value == nil:
		case m.bare && (value == nil || filledIn[name] || isTime(name, s)):
		case name == "resourceVersion" && s != "":
			all[name] = m.number(&m.versions, "version", s)
		case name == "uid" && s != "":
			all[name] = m.number(&m.uids, "uid", s)
		case isTime(name, s):
			all[name] = "<time>"
		case name == "kates.io/applied":
			all[name] = "<hash>"
		default:
			all[m.text(name)] = m.mask(value)
		}
	}
	return all
}

// filledIn are fields of the metadata, and of owner references, that a server sets.
var filledIn = map[string]bool{"resourceVersion": true, "uid": true, "generation": true, "selfLink": true}

func isTime(name, value string) bool {
	name = strings.ToLower(name)
	if !strings.HasSuffix(name, "time") && !strings.HasSuffix(name, "timestamp") {
		return false
	}
	_, err := time.Parse(time.RFC3339Nano, value)
	return err == nil
}

// shortest is the length of UIDs that are found within texts. A shorter one, which a test has made
// up, is found only where it is the whole text.
const shortest = 16

func (m *Masks) text(s string) string {
	if _, is := m.known[s]; is {
		return m.number(&m.uids, "uid", s)
	}
	if name, made := m.names[s]; made {
		return name
	}
	if len(s) > shortest {
		for _, uid := range slices.Sorted(maps.Keys(m.known)) {
			if len(uid) >= shortest && strings.Contains(s, uid) {
				s = strings.ReplaceAll(s, uid, m.number(&m.uids, "uid", uid))
			}
		}
	}
	return s
}

func (m *Masks) number(of *map[string]string, what, value string) string {
	if m.state {
		return strings.TrimSuffix("<"+what+" of "+m.known[value], " of ") + ">"
	}
	if mask, known := (*of)[value]; known {
		return mask
	}
	mask := fmt.Sprintf("<%s %d>", what, len(*of)+1)
	set(of, value, mask)
	return mask
}

// hide returns a copy of a Secret with hashes in place of its values.
func hide(object map[string]any) map[string]any { return secret.Hide(object, hashed) }

// hideOwn is hide for what a program has decoded from a Secret: any of its fields may have a
// value.
func hideOwn(object map[string]any) map[string]any { return secret.HideOwn(object, hashed) }

// hashed is what stands for a value. Data of a Secret is hashed as it is, without base64.
func hashed(value any, encoded bool) any {
	content := []byte(fmt.Sprint(value))
	if encoded {
		if plain, err := base64.StdEncoding.DecodeString(string(content)); err == nil {
			content = plain
		}
	}
	sum := sha256.Sum256(content)
	return "<sha256 " + hex.EncodeToString(sum[:8]) + ">"
}
