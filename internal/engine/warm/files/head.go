package files

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	names "k8s.io/apimachinery/pkg/api/validate/content"
)

// Format is the version of the format, and of how objects are packed. Another one is not read.
const Format = 2

// Origin is what a server says of itself. Objects that come from another origin may look
// otherwise.
type Origin struct {
	// Member names whose files these are: see [Member]. The UID of a cluster is what a server says,
	// and another server can say the same.
	Member  string `json:"member"`
	Cluster string `json:"cluster"` // its UID
	Server  string `json:"server"`  // the version of the API server
	Schema  string `json:"schema"`  // names the schemas of the API's group and version
}

// Query is what a stream asks for, and how it holds it.
type Query struct {
	Resource  string `json:"resource"` // group, version and resource
	Kind      string `json:"kind"`
	Storage   string `json:"storage"`
	Namespace string `json:"namespace,omitempty"`
	Labels    string `json:"labels,omitempty"`
	Fields    string `json:"fields,omitempty"`
	AnyOf     string `json:"anyOf,omitempty"` // alternatives
	Shard     string `json:"shard,omitempty"`
	Form      string `json:"form,omitempty"`
}

// Identity says what the objects of a file are. A file is of use only to who has the same.
type Identity struct {
	Format int `json:"format"`
	Origin
	Query
	Packing string `json:"packing"` // how objects are packed, and the Go type that they are packed from
}

// Member returns the name under which the files of a cluster are kept: that of its name in the
// program, and of how it is reached.
func Member(name, connection string) string {
	text, _ := json.Marshal([]string{name, connection}) // strings always have a form
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:])
}

// Name returns the name of the files of a query of a member. It has no character that a file
// system could mind. What may change from one version of a program or a server to the next is not
// part of it: so a file that has become useless is written over.
func (i Identity) Name() string {
	text, _ := json.Marshal([]any{i.Member, i.Cluster, i.Query}) // strings always have a form
	sum := sha256.Sum256(text)
	resource := i.Resource[strings.LastIndexByte(i.Resource, '/')+1:]
	return clean(resource) + "-" + hex.EncodeToString(sum[:12])
}

// clean drops what is neither a small letter nor a digit.
func clean(text string) string {
	return strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= '0' && r <= '9' {
			return r
		}
		return -1
	}, text)
}

// Differs says in words what makes another identity another one; "" if it is the same.
func (i Identity) Differs(o Identity) string {
	for _, part := range []struct {
		what string
		a, b any
	}{
		{"another format", i.Format, o.Format},
		{"another name or address", i.Member, o.Member},
		{"another cluster", i.Cluster, o.Cluster},
		{"another version of the server", i.Server, o.Server},
		{"another schema of the API", i.Schema, o.Schema},
		{"another query", i.Query, o.Query},
		{"another version of the program's types", i.Packing, o.Packing},
	} {
		if part.a != part.b {
			return part.what
		}
	}
	return ""
}

// Witness is an object of a file, by which a server shows that it has the same history.
type Witness struct {
	Namespace string `json:"namespace,omitempty"`
	Name      string `json:"name"`
	UID       string `json:"uid"`
	Version   string `json:"version"`
}

// Head is what stands at the beginning of a file.
type Head struct {
	Identity
	ID string `json:"id"` // of this file
	// Of changes alone:
	Base      string    `json:"base,omitempty"` // the file that they are changes of
	Position  string    `json:"position,omitempty"`
	Saved     time.Time `json:"saved,omitzero"`
	Objects   int       `json:"objects,omitempty"` // that there are, the base's included
	Witnesses []Witness `json:"witnesses,omitempty"`

	Salt []byte `json:"salt,omitempty"` // of the key; none: the file is not encrypted
}

// NewID returns a name that no other file has.
func NewID() string { return rand.Text() }

// Base and Changes are what the names of the two files of a query end in.
const (
	Base    = ".base"
	Changes = ".changes"
)

// check is an error for a head that no program writes. Names of witnesses become parts of paths.
func (h Head) check() error {
	if len(h.Witnesses) > WitnessesMost || len(h.Position) > wordMost || len(h.ID) > wordMost || len(h.Base) > wordMost {
		return errDamaged
	}
	for _, w := range h.Witnesses {
		for _, word := range []string{w.Namespace, w.Name, w.UID, w.Version} {
			if len(word) > wordMost {
				return errDamaged
			}
		}
		if len(names.IsPathSegmentName(w.Namespace)) > 0 || len(names.IsPathSegmentName(w.Name)) > 0 {
			return errDamaged
		}
	}
	return nil
}

func (h Head) marshal() ([]byte, error) {
	text, err := json.Marshal(h)
	if err == nil && len(text) > headMost {
		err = fmt.Errorf("a head of %d bytes", len(text))
	}
	return text, err
}
