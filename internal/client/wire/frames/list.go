package frames

import (
	"encoding/json"
	"fmt"
	"io"
	"slices"

	"google.golang.org/protobuf/encoding/protowire"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utiljson "k8s.io/apimachinery/pkg/util/json"
)

// Wanted is what was asked for.
type Wanted struct {
	// MaxObjectBytes bounds each object of the answer. 0 is no bound.
	MaxObjectBytes int64
	// Accept is asked once what the list says of itself, "" for what it does not say. Its error
	// ends the list. Nil accepts every list.
	Accept func(apiVersion, kind string) error
	// Head gets the list's metadata where these come before the items. Nil: nobody asks.
	Head func(metav1.ListMeta)
}

// List reads a list and calls item with each of its items, in order: JSON, or the item's protobuf
// message. The function may write to the bytes until it returns; its error ends the list. List
// returns the list's own metadata, which may come before or after the items, and the encoding.
//
// It is an error if the list lacks items (null is an empty list, and protobuf leaves an empty one
// out), has a member twice, is a Status, is cut, or is followed by more.
func List(
	r io.Reader, w Wanted, item func(raw []byte, e Encoding) error,
) (metav1.ListMeta, Encoding, error) {
	b := newBody(r, w.MaxObjectBytes)
	l := &list{body: b, wanted: w}
	c, err := b.space()
	if err != nil {
		return l.meta, "", unexpected(err)
	}
	e := JSON
	switch c {
	case '{':
		err = l.readJSON(func(raw []byte) error { return item(raw, JSON) })
	case magic[0]:
		e = Protobuf
		err = l.readProto(func(raw []byte) error { return item(raw, Protobuf) })
	case '<':
		err = broken("a page in place of a list, perhaps of a proxy: it begins with %q", c)
	default:
		err = broken("a list begins with %q", c)
	}
	if err != nil {
		return l.meta, e, err
	}
	return l.meta, e, b.finish()
}

// list is a list that is being read.
type list struct {
	*body
	wanted Wanted
	meta   metav1.ListMeta
	seen   []string // members, each once

	apiVersion, kind string
	accepted         bool          // Accept was asked
	status           metav1.Status // what the answer says if it is a Status
}

const (
	statusKind = "Status"
	// maxQuoted is how much of a Status is quoted.
	maxQuoted = 1024
	// maxMembers is how many members a list may have. It should have four.
	maxMembers = 100
)

// once is an error if the list has this member already, or too many.
func (l *list) once(member string) error {
	if len(l.seen) == maxMembers {
		return broken("a list with more than %d members", maxMembers)
	}
	if slices.Contains(l.seen, member) {
		return broken("a list with %s twice", member)
	}
	l.seen = append(l.seen, member)
	return nil
}

// says notes what the list says of itself, and asks whether that is wanted as soon as both are
// known. A Status is read to its end, for what it says.
func (l *list) says(last bool) error {
	if l.accepted || !last && (l.apiVersion == "" || l.kind == "" || l.kind == statusKind) {
		return nil
	}
	l.accepted = true
	if l.kind == statusKind {
		quoted := l.status.Message
		if len(quoted) > maxQuoted {
			quoted = quoted[:maxQuoted] + "…"
		}
		return broken("a Status in place of a list, though the request succeeded: %s %q",
			l.status.Reason, quoted)
	}
	if l.wanted.Accept == nil {
		return nil
	}
	return l.wanted.Accept(l.apiVersion, l.kind)
}

// readJSON reads a list in JSON.
func (l *list) readJSON(item func(raw []byte) error) error {
	items := false
	err := l.object(func(key []byte) error {
		if err := l.once(string(key)); err != nil {
			return err
		}
		switch string(key) {
		case `"items"`:
			items = true
			return l.array(item)
		case `"metadata"`:
			err := l.read(&l.meta, "metadata")
			if !items && err == nil {
				l.head()
			}
			return err
		case `"kind"`:
			return l.named(&l.kind, "kind")
		case `"apiVersion"`:
			return l.named(&l.apiVersion, "apiVersion")
		case `"message"`:
			return l.optional(&l.status.Message)
		case `"reason"`:
			return l.optional((*string)(&l.status.Reason))
		}
		return l.optional(nil)
	})
	if err == nil {
		err = l.says(true)
	}
	if err == nil && !items {
		return broken("a list without items")
	}
	return err
}

// read decodes a member of a list.
func (l *list) read(into any, member string) error {
	raw, err := l.value()
	if err != nil {
		return err
	}
	if err := utiljson.Unmarshal(raw, into); err != nil {
		return fmt.Errorf("%w: %s of a list: %w", errSyntax, member, err)
	}
	return nil
}

// head tells the metadata.
func (l *list) head() {
	if l.wanted.Head != nil {
		l.wanted.Head(l.meta)
	}
}

// named reads what the list says of itself.
func (l *list) named(into *string, member string) error {
	if err := l.read(into, member); err != nil {
		return err
	}
	return l.says(false)
}

// optional reads a member that lists do not have: a string, if it is one.
func (l *list) optional(into *string) error {
	raw, err := l.value()
	switch {
	case err != nil:
		return err
	case !json.Valid(raw):
		return broken("a member of a list that is not JSON")
	case into != nil && raw[0] == '"':
		return json.Unmarshal(raw, into)
	}
	return nil
}

// The field numbers of runtime.Unknown, the envelope, of its TypeMeta, and of every list. All
// fields are bytes; the envelope has four of them, and a list has two.
const (
	unknownType   = 1
	unknownRaw    = 2
	unknownFields = 4

	typeVersion = 1
	typeKind    = 2

	listMeta   = 1
	listItems  = 2
	listFields = 2
)

// readProto reads a list in protobuf.
func (l *list) readProto(item func(raw []byte) error) error {
	if err := l.magic(); err != nil {
		return err
	}
	whole := false
	err := l.message(-1, unknownFields, func(number protowire.Number, n int) error {
		switch number {
		case unknownType:
			return l.typeMeta(n)
		case unknownRaw:
			if err := l.once("content"); err != nil {
				return err
			}
			whole = true
			return l.content(n, item)
		}
		return l.pass(n)
	})
	if err == nil {
		err = l.says(true)
	}
	if err == nil && !whole {
		err = io.ErrUnexpectedEOF
	}
	return err
}

// typeOf reads the type in an envelope, which may be the one before.
func typeOf(raw []byte, lastVersion, lastKind string) (apiVersion, kind string, err error) {
	err = fields(raw, typeKind, func(number protowire.Number, value []byte) error {
		switch number {
		case typeVersion:
			apiVersion = again(lastVersion, value)
		case typeKind:
			kind = again(lastKind, value)
		}
		return nil
	})
	return apiVersion, kind, err
}

// typeMeta reads what the list says of itself.
func (l *list) typeMeta(n int) error {
	if err := l.once("type"); err != nil {
		return err
	}
	raw, err := l.take(n)
	if err != nil {
		return err
	}
	if l.apiVersion, l.kind, err = typeOf(raw, "", ""); err != nil {
		return err
	}
	return l.says(false)
}

// content reads the list within the envelope.
func (l *list) content(n int, item func(raw []byte) error) error {
	if l.kind == statusKind {
		return l.decoded(n, "a Status", l.status.Unmarshal)
	}
	items := false
	return l.message(l.offset()+int64(n), listFields, func(number protowire.Number, n int) error {
		switch number {
		case listMeta:
			if err := l.once("metadata"); err != nil {
				return err
			}
			err := l.decoded(n, "metadata of a list", l.meta.Unmarshal)
			if !items && err == nil {
				l.head()
			}
			return err
		case listItems:
			items = true
			raw, err := l.take(n)
			if err != nil {
				return err
			}
			return item(raw)
		}
		return l.pass(n)
	})
}

// decoded decodes a message as a whole.
func (l *list) decoded(n int, what string, decode func([]byte) error) error {
	raw, err := l.take(n)
	if err != nil {
		return err
	}
	if err := decode(raw); err != nil {
		return fmt.Errorf("%w: %s: %w", errSyntax, what, err)
	}
	return nil
}

func (b *body) magic() error {
	start, err := b.take(len(magic))
	if err == nil && string(start) != magic {
		err = broken("it begins with %q", start)
	}
	return err
}
