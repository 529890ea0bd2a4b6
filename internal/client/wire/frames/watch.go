package frames

import (
	"encoding/binary"
	"encoding/json"
	"io"

	"google.golang.org/protobuf/encoding/protowire"
	"k8s.io/apimachinery/pkg/watch"
)

// Event is an event of a watch. The object is JSON, or a protobuf message without its envelope.
// Its bytes are valid until the next event is read, and the reader may write to them.
type Event struct {
	Type     watch.EventType
	Object   []byte
	Encoding Encoding
	// APIVersion and Kind are those of the envelope. JSON has none, and has them in the object.
	APIVersion, Kind string
}

// Events reads the events of a watch. It is for one goroutine.
type Events struct {
	b      *body
	inside bool
	last   Event // of protobuf: the next one mostly says the same of itself, in the same memory
}

// Watch reads the answer to a watch. No event may have more bytes than the bound.
func Watch(r io.Reader, maxObjectBytes int64) *Events { return &Events{b: newBody(r, maxObjectBytes)} }

// Inside reports whether the latest error came in the middle of an event, and not between two.
func (w *Events) Inside() bool { return w.inside }

// Buffered reports whether more of the answer is in memory.
func (w *Events) Buffered() bool { return w.b.at < w.b.end }

// Next waits for the next event. At the end of the watch the error is io.EOF, in the middle of an
// event it is io.ErrUnexpectedEOF.
func (w *Events) Next() (Event, error) {
	w.inside = false
	c, err := w.b.peek()
	if err != nil {
		return Event{}, err
	}
	w.inside = c < '\t'
	// A frame of protobuf begins with its length in four bytes, of which the first is small. An
	// event in JSON begins with a bracket, or with white space, of which the least is the tab.
	if c < '\t' {
		return w.eventProto()
	}
	if c, err = w.b.space(); err != nil {
		return Event{}, err
	}
	w.inside = true
	switch c {
	case '{':
		return w.b.eventJSON()
	case '<':
		return Event{}, broken("it is a page of HTML or XML, and no watch")
	case magic[0]:
		return Event{}, broken("it is an object in protobuf, and no watch")
	}
	return Event{}, broken("an event begins with %q", c)
}

func (b *body) eventJSON() (Event, error) {
	e := Event{Encoding: JSON}
	raw, err := b.value()
	if err != nil {
		return e, err
	}
	event := inMemory(raw)
	typed := false
	err = event.object(func(key []byte) error {
		value, err := event.value()
		switch {
		case err != nil:
			return err
		case string(key) == `"type"` && !typed:
			typed = true
			if err := json.Unmarshal(value, &e.Type); err != nil {
				return broken("the type of an event: %v", err)
			}
		case string(key) == `"object"` && e.Object == nil:
			e.Object = value
		case string(key) == `"type"`, string(key) == `"object"`:
			return broken("an event with %s twice", key)
		case !json.Valid(value):
			return broken("a member of an event that is not JSON")
		}
		return nil
	})
	if err == nil && e.Object == nil {
		err = noEvent(raw)
	}
	return e, err
}

// mostText is how much of a text by the server is in an error.
const mostText = 200

// noEvent says what is there in place of an event.
func noEvent(raw []byte) error {
	var is struct{ Kind, Message string }
	if json.Unmarshal(raw, &is) != nil || is.Kind == "" {
		return broken("an event without an object")
	}
	kind, message := is.Kind[:min(len(is.Kind), mostText)], is.Message[:min(len(is.Message), mostText)]
	return broken("a %s in place of an event: %q", kind, message)
}

// The field numbers of metav1.WatchEvent.
const (
	eventType   = 1
	eventObject = 2

	eventFields = 2
)

func (w *Events) eventProto() (Event, error) {
	e := Event{Encoding: Protobuf}
	head, err := w.b.take(4)
	if err != nil {
		return e, err
	}
	raw, err := w.b.take(int(binary.BigEndian.Uint32(head)))
	if err != nil {
		return e, err
	}
	var object []byte
	if err := fields(raw, eventFields, func(number protowire.Number, value []byte) error {
		switch number {
		case eventType:
			e.Type = watch.EventType(again(string(w.last.Type), value))
		case eventObject:
			return fields(value, 1, func(number protowire.Number, value []byte) error {
				if number == 1 {
					object = value
				}
				return nil
			})
		}
		return nil
	}); err != nil {
		return e, err
	}
	err = e.open(object, &w.last)
	w.last.Type, w.last.APIVersion, w.last.Kind = e.Type, e.APIVersion, e.Kind
	return e, err
}

// again returns the last text if the bytes are the same.
func again(last string, raw []byte) string {
	if last == string(raw) {
		return last
	}
	return string(raw)
}

// open takes the object out of its envelope, which mostly says the same as the last one.
func (e *Event) open(object []byte, last *Event) error {
	if len(object) < len(magic) || string(object[:len(magic)]) != magic {
		return broken("an event without an object")
	}
	return fields(object[len(magic):], unknownFields, func(number protowire.Number, value []byte) (err error) {
		switch number {
		case unknownType:
			e.APIVersion, e.Kind, err = typeOf(value, last.APIVersion, last.Kind)
		case unknownRaw:
			e.Object = value
		}
		return err
	})
}
