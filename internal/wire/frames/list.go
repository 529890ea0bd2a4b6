package frames

import (
	"encoding/json"
	"fmt"
	"io"

	"google.golang.org/protobuf/encoding/protowire"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Wanted is what was asked for.
type Wanted struct {
	// MaxObjectBytes bounds each object of the answer.
	MaxObjectBytes int64
}

// List reads a list and calls item with each of its items, in order: JSON, or the item's protobuf
// message. The function may write to the bytes until it returns; its error ends the list. List
// returns the list's own metadata, which may come before or after the items, and the encoding.
func List(
	r io.Reader, w Wanted, item func(raw []byte, e Encoding) error,
) (metav1.ListMeta, Encoding, error) {
	b := newBody(r, w.MaxObjectBytes)
	var m metav1.ListMeta
	c, err := b.space()
	if err != nil {
		return m, "", unexpected(err)
	}
	e := JSON
	switch c {
	case '{':
		err = b.listJSON(&m, func(raw []byte) error { return item(raw, JSON) })
	case magic[0]:
		e = Protobuf
		err = b.listProto(&m, func(raw []byte) error { return item(raw, Protobuf) })
	default:
		return m, "", broken("a list begins with %q", c)
	}
	if err == nil {
		err = b.drain()
	}
	return m, e, err
}

func (b *body) listJSON(m *metav1.ListMeta, item func(raw []byte) error) error {
	items := false
	err := b.object(func(key []byte) error {
		switch string(key) {
		case `"items"`:
			items = true
			return b.array(item)
		case `"metadata"`:
			raw, err := b.value()
			if err != nil {
				return err
			}
			if err := json.Unmarshal(raw, m); err != nil {
				return fmt.Errorf("%w: metadata of a list: %w", errSyntax, err)
			}
			return nil
		}
		_, err := b.value()
		return err
	})
	if err == nil && !items {
		return broken("a list without items")
	}
	return err
}

// The field numbers of runtime.Unknown, the envelope, and of every list.
const (
	unknownRaw = 2

	listMeta  = 1
	listItems = 2
)

func (b *body) listProto(m *metav1.ListMeta, item func(raw []byte) error) error {
	if err := b.magic(); err != nil {
		return err
	}
	whole := false
	err := b.message(-1, func(number protowire.Number, n int) error {
		if number != unknownRaw {
			return b.pass(n)
		}
		whole = true
		return b.message(b.offset()+int64(n), func(number protowire.Number, n int) error {
			switch number {
			case listMeta:
				raw, err := b.take(n)
				if err != nil {
					return err
				}
				if err := m.Unmarshal(raw); err != nil {
					return fmt.Errorf("%w: metadata of a list: %w", errSyntax, err)
				}
				return nil
			case listItems:
				raw, err := b.take(n)
				if err != nil {
					return err
				}
				return item(raw)
			}
			return b.pass(n)
		})
	})
	if err == nil && !whole {
		err = io.ErrUnexpectedEOF
	}
	return err
}

func (b *body) magic() error {
	start, err := b.take(len(magic))
	if err == nil && string(start) != magic {
		err = broken("it begins with %q", start)
	}
	return err
}
