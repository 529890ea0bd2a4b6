package recording

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"strings"

	"google.golang.org/protobuf/encoding/protowire"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes/scheme"

	"github.com/kates-go/kates/internal/client/wire/frames"
)

// magic is the start of an object in protobuf.
const magic = "k8s\x00"

// item is an object as it came, without its envelope.
type item struct {
	raw              []byte
	encoding         frames.Encoding
	apiVersion, kind string
	id               frames.Identity
}

// list is an answer to a list, or a page of it.
type list struct {
	encoding         frames.Encoding
	apiVersion, kind string
	meta             metav1.ListMeta
	items            []item
}

// event is an event of a watch.
type event struct {
	kind watch.EventType
	item
}

// readList cuts a list.
func readList(body []byte) (l list, err error) {
	w := frames.Wanted{Accept: func(apiVersion, kind string) error {
		l.apiVersion, l.kind = apiVersion, kind
		return nil
	}}
	l.meta, l.encoding, err = frames.List(bytes.NewReader(body), w, func(raw []byte, e frames.Encoding) error {
		l.items = append(l.items, item{raw: bytes.Clone(raw), encoding: e, id: frames.IdentityOf(raw, e)})
		return nil
	})
	for i := range l.items {
		l.items[i].apiVersion, l.items[i].kind = l.of()
		if l.items[i].encoding == frames.JSON {
			l.items[i].says()
		}
	}
	return l, err
}

// of is what the items of a list are, as far as the list tells.
func (l *list) of() (apiVersion, kind string) {
	return l.apiVersion, strings.TrimSuffix(l.kind, "List")
}

// says takes the type from JSON that has it.
func (i *item) says() {
	var is metav1.TypeMeta
	if json.Unmarshal(i.raw, &is) == nil && is.Kind != "" {
		i.apiVersion, i.kind = is.APIVersion, is.Kind
	}
}

// readEvent cuts an event. The bytes are its own.
func readEvent(frame []byte) (event, error) {
	e, err := frames.Watch(bytes.NewReader(frame), 0).Next()
	if err != nil {
		return event{}, err
	}
	raw := bytes.Clone(e.Object)
	i := item{raw: raw, encoding: e.Encoding, apiVersion: e.APIVersion, kind: e.Kind, id: frames.IdentityOf(raw, e.Encoding)}
	if i.encoding == frames.JSON {
		i.says()
	}
	return event{e.Type, i}, nil
}

// readObject takes one object, and reports whether there is one.
func readObject(body []byte) (item, bool) {
	if !bytes.HasPrefix(body, []byte(magic)) {
		i := item{raw: body, encoding: frames.JSON}
		i.says()
		return i, i.kind != ""
	}
	var u runtime.Unknown
	if u.Unmarshal(body[len(magic):]) != nil {
		return item{}, false
	}
	return item{raw: u.Raw, encoding: frames.Protobuf, apiVersion: u.APIVersion, kind: u.Kind}, true
}

// enveloped is the object as an answer of its own, or in an event.
func (i *item) enveloped() ([]byte, error) {
	if i.encoding == frames.JSON {
		return i.typed(), nil
	}
	return envelope(i.apiVersion, i.kind, i.raw)
}

func envelope(apiVersion, kind string, raw []byte) ([]byte, error) {
	u := runtime.Unknown{TypeMeta: runtime.TypeMeta{APIVersion: apiVersion, Kind: kind}, Raw: raw}
	data, err := u.Marshal()
	return append([]byte(magic), data...), err
}

// typed is the JSON of an object with its type: lists leave it out, events have it.
func (i *item) typed() []byte {
	var is metav1.TypeMeta
	if json.Unmarshal(i.raw, &is) != nil || is.Kind != "" || i.kind == "" {
		return i.raw
	}
	open := bytes.IndexByte(i.raw, '{')
	start := fmt.Appendf(nil, `{"kind":%q,"apiVersion":%q`, i.kind, i.apiVersion)
	if rest := bytes.TrimLeft(i.raw[open+1:], " \t\r\n"); len(rest) > 0 && rest[0] != '}' {
		start = append(start, ',')
	}
	return append(start, i.raw[open+1:]...)
}

// encode builds a list from its items, all of one encoding.
func (l *list) encode() ([]byte, error) {
	if l.encoding == frames.JSON {
		return l.encodeJSON()
	}
	meta, err := l.meta.Marshal()
	if err != nil {
		return nil, err
	}
	raw := protowire.AppendBytes(protowire.AppendTag(nil, 1, protowire.BytesType), meta)
	for _, i := range l.items {
		raw = protowire.AppendBytes(protowire.AppendTag(raw, 2, protowire.BytesType), i.raw)
	}
	return envelope(l.apiVersion, l.kind, raw)
}

func (l *list) encodeJSON() ([]byte, error) {
	meta, err := json.Marshal(l.meta)
	if err != nil {
		return nil, err
	}
	b := fmt.Appendf(nil, `{"kind":%q,"apiVersion":%q,"metadata":%s,"items":[`, l.kind, l.apiVersion, meta)
	for n, i := range l.items {
		if n > 0 {
			b = append(b, ',')
		}
		b = append(b, bytes.TrimSpace(i.raw)...)
	}
	return append(b, "]}\n"...), nil
}

// encode builds the frame of an event.
func (e *event) encode() ([]byte, error) {
	object, err := e.enveloped()
	if err != nil {
		return nil, err
	}
	if e.encoding == frames.JSON {
		object = bytes.ReplaceAll(bytes.TrimSpace(object), []byte("\n"), []byte(" "))
		return fmt.Appendf(nil, `{"type":%q,"object":%s}`+"\n", e.kind, object), nil
	}
	w := metav1.WatchEvent{Type: string(e.kind), Object: runtime.RawExtension{Raw: object}}
	data, err := w.Marshal()
	return append(binary.BigEndian.AppendUint32(nil, uint32(len(data))), data...), err
}

// message is a Go type that reads and writes protobuf.
type message interface {
	runtime.Object
	Marshal() ([]byte, error)
	Unmarshal([]byte) error
}

// decode makes the Go object of protobuf. Only built-in kinds have a Go type here.
func (i *item) decode() (message, error) {
	gvk := schema.FromAPIVersionAndKind(i.apiVersion, i.kind)
	var o runtime.Object = &metav1.PartialObjectMetadata{}
	if gvk.Group != metav1.GroupName || gvk.Kind != "PartialObjectMetadata" {
		var err error
		if o, err = scheme.Scheme.New(gvk); err != nil {
			return nil, fmt.Errorf("a %s in protobuf: %w", gvk.Kind, err)
		}
	}
	m, ok := o.(message)
	if !ok {
		return nil, fmt.Errorf("a %s has no protobuf", gvk.Kind)
	}
	if err := m.Unmarshal(i.raw); err != nil {
		return nil, fmt.Errorf("a %s in protobuf does not decode", gvk.Kind)
	}
	m.GetObjectKind().SetGroupVersionKind(gvk)
	return m, nil
}

// json returns the object in JSON.
func (i *item) json() (item, error) {
	if i.encoding == frames.JSON {
		return *i, nil
	}
	o, err := i.decode()
	if err != nil {
		return item{}, err
	}
	to := *i
	to.encoding = frames.JSON
	to.raw, err = json.Marshal(o)
	return to, err
}
