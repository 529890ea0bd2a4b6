package frames

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"reflect"
	"slices"
	"strings"
	"testing"
	"testing/iotest"
	"unicode/utf8"

	"google.golang.org/protobuf/encoding/protowire"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	utiljson "k8s.io/apimachinery/pkg/util/json"
)

// cut is a list as it was taken apart.
type cut struct {
	meta  metav1.ListMeta
	items [][]byte
}

// cutList takes a list apart in three ways of arriving, which must be the same.
func cutList(t *testing.T, raw []byte) (cut, error) {
	t.Helper()
	read := func(r io.Reader) (c cut, err error) {
		c.meta, _, err = List(r, anything, func(raw []byte, _ Encoding) error {
			c.items = append(c.items, bytes.Clone(raw))
			return nil
		})
		return c, err
	}
	c, err := read(bytes.NewReader(raw))
	for _, r := range []io.Reader{iotest.OneByteReader(bytes.NewReader(raw)), iotest.DataErrReader(bytes.NewReader(raw))} {
		other, otherErr := read(r)
		if (err == nil) != (otherErr == nil) || !slices.EqualFunc(c.items, other.items, bytes.Equal) {
			t.Fatalf("%q: %v and then %v", raw, err, otherErr)
		}
	}
	return c, err
}

// listed is a list in JSON, as apimachinery decodes it.
type listed struct {
	Kind       string            `json:"kind"`
	APIVersion string            `json:"apiVersion"`
	Metadata   metav1.ListMeta   `json:"metadata"`
	Items      []json.RawMessage `json:"items"`
}

// membersOf returns the members of a JSON object, and how often each is there.
func membersOf(raw []byte) (members map[string]json.RawMessage, times map[string]int) {
	members, times = map[string]json.RawMessage{}, map[string]int{}
	decoder := json.NewDecoder(bytes.NewReader(raw))
	if first, _ := decoder.Token(); first != json.Delim('{') {
		return members, times
	}
	for decoder.More() {
		token, _ := decoder.Token()
		key, _ := token.(string)
		var value json.RawMessage
		if decoder.Decode(&value) != nil {
			break
		}
		members[key] = value
		times[key]++
	}
	return members, times
}

// decodeStrictly decodes a JSON object, in which no member may be there twice. Whole says that all
// of raw is JSON.
func decodeStrictly(raw []byte, p any) (whole bool, err error) {
	if !json.Valid(raw) {
		return false, errors.New("no JSON")
	}
	_, times := membersOf(raw)
	for key, n := range times {
		if n > 1 {
			return true, fmt.Errorf("%q is there twice", key)
		}
	}
	return true, utiljson.Unmarshal(raw, p)
}

func FuzzAListInJSONIsCutAsItIsDecoded(f *testing.F) {
	for _, seed := range []string{
		`{"items":[1,{"a":"\\\"}"},[]]}`, `{"metadata":{"continue":"x"},"items":[null]}`, `{"items":[]}`,
		`{"a":{"items":[1]},"items":[2]}`, `{"items":[1],"items":[2]}`, `{"\u0069tems":[1]}`, `{"items":[]}x`,
		`{"kind":[7},"items":[]}`, `{7:1,"items":[]}`, `{"items":nothing}`, "{\"\xff\":1,\"items\":[{\"a\":\"\xff\"}]}",
		`{"metadata":{"resourceVersion":"1"},"metadata":{"continue":"x"},"items":[]}`, "\n{ \"items\" :\t[ ] }\r\n",
		`{"metadata":{"Continue":"x"},"items":[1e5,-0.1,true,"a"]}`, `{"items":null,"kind":null}`, `{"items":[],"kind":7}`,
		`{"items":[],"kind":"Status","message":"m","reason":7}`, `{"items":[],"a":1,"a":2}`, `{"kind":"L","Kind":"Status","items":[]}`,
		manyMembers(maxMembers), manyMembers(maxMembers + 1),
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		got, err := cutList(t, raw)
		var want listed
		whole, wantErr := decodeStrictly(raw, &want)
		members := map[string]json.RawMessage{}
		if whole {
			members, _ = membersOf(raw)
		}
		if err == nil { // items are not checked: their decoder does that
			for _, item := range got.items {
				if !json.Valid(item) {
					return
				}
			}
			if !whole || members["items"] == nil || want.Kind == statusKind || len(members) > maxMembers {
				t.Fatalf("%q is taken for a list", raw)
			}
			if wantErr != nil && utf8.Valid(raw) { // two keys that are none may decode to the same one
				t.Fatalf("%q is taken for a list: %v", raw, wantErr)
			}
		}
		if wantErr != nil || members["items"] == nil || want.Kind == statusKind || len(members) > maxMembers {
			return
		}
		if err != nil {
			t.Fatalf("%q is a list: %v", raw, err)
		}
		if got.meta.Continue != want.Metadata.Continue || got.meta.ResourceVersion != want.Metadata.ResourceVersion {
			t.Fatalf("%q: %v, want %v", raw, got.meta, want.Metadata)
		}
		same := func(a []byte, b json.RawMessage) bool { return string(a) == string(b) }
		if !slices.EqualFunc(got.items, want.Items, same) {
			t.Fatalf("%q: %q, want %q", raw, got.items, want.Items)
		}
	})
}

// manyMembers is a list with so many members.
func manyMembers(n int) string {
	var text strings.Builder
	for i := range n - 1 {
		fmt.Fprintf(&text, `"m%d":%d,`, i, i)
	}
	return "{" + text.String() + `"items":[1]}`
}

// eventsOf reads all events of a watch.
func eventsOf(r io.Reader) (all []Event, err error) {
	events := Watch(r, most)
	for {
		e, err := events.Next()
		if err != nil {
			return all, err
		}
		e.Object = bytes.Clone(e.Object)
		all = append(all, e)
	}
}

func sameEvent(a, b Event) bool {
	return a.Type == b.Type && a.Encoding == b.Encoding && bytes.Equal(a.Object, b.Object)
}

func FuzzEventsInJSONAreCutAsTheyAreDecoded(f *testing.F) {
	for _, seed := range []string{
		`{"type":"ADDED","object":{"a":"}"}}` + "\n" + `{"type":"DELETED","object":null}`, `{"type":7,"object":{}}`,
		`{"object":{},"type":"A","object":[]}`, `{"typ\u0065":"A","object":1}`, `{"type":"A"}`, `{"type":"A","object":{},"x":[7}}`,
		`{"type":"A","type":"B","object":1}`, " {\"type\":\"\xff\",\"object\":0}\n\n", `{"type":null,"object":{}}{`,
		`{"type":null,"object":{},"type":"A"}`, `{"type":"A","object":{},"x":1,"x":2}`, "{\"type\":\"A\",\"object\":{},\"\v\":1}",
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		if len(raw) == 0 || raw[0] < '\t' {
			return // protobuf
		}
		got, err := eventsOf(bytes.NewReader(raw))
		again, againErr := eventsOf(iotest.OneByteReader(bytes.NewReader(raw)))
		if (err == io.EOF) != (againErr == io.EOF) || !slices.EqualFunc(got, again, sameEvent) {
			t.Fatalf("%q: %v and then %v", raw, err, againErr)
		}
		decoder := json.NewDecoder(bytes.NewReader(raw))
		for i := 0; ; i++ {
			var one json.RawMessage
			if decoder.Decode(&one) != nil {
				if i < len(got) && json.Valid(got[i].Object) { // a broken object is its decoder's business
					t.Fatalf("%q is no JSON, and taken for the event of %q", raw, got[i].Object)
				}
				return
			}
			var want struct {
				Type   string          `json:"type"`
				Object json.RawMessage `json:"object"`
			}
			_, times := membersOf(one)
			wantErr := utiljson.Unmarshal(one, &want) // what nobody reads may be there twice
			if times["type"] > 1 || times["object"] > 1 {
				wantErr = errors.New("a member is there twice")
			}
			if (wantErr != nil || want.Object == nil) && i < len(got) {
				t.Fatalf("%q: %q is taken for an event: %v", raw, one, wantErr)
			}
			if wantErr != nil || want.Object == nil {
				return
			}
			if i >= len(got) {
				t.Fatalf("%q: %d events: %v", raw, len(got), err)
			}
			if string(got[i].Type) != want.Type || string(got[i].Object) != string(want.Object) {
				t.Fatalf("%q: %q, want %q", raw, got[i].Object, want.Object)
			}
		}
	})
}

func FuzzAListInProtobufIsCutAsItIsDecoded(f *testing.F) {
	list := &corev1.PodList{Items: []corev1.Pod{*pod("p", 3), {}}}
	list.ResourceVersion, list.Continue = "7", "more"
	whole := wrap(f, list, "PodList")
	f.Add(whole)
	f.Add([]byte("k8s\x00\x12\x02\x10\x01"))         // items that are a number
	f.Add([]byte("k8s\x00\x10\x01"))                 // an envelope with a number for its content
	f.Add([]byte("k8s\x00\x12\x00\x12\x02\x12\x00")) // two contents
	f.Add([]byte("k8s\x00\x12\x04\x0a\x02\x12\x00"))
	f.Add([]byte("k8s\x00\x0a\x06\x12\x01k\x12\x01l\x12\x00")) // two kinds
	f.Add([]byte("k8s\x00\x0a\x08\x12\x06Status\x12\x00"))
	f.Add([]byte("k8s\x00\x12\x00\x0a\x08\x12\x06Status"))
	f.Fuzz(func(t *testing.T, raw []byte) {
		if !bytes.HasPrefix(raw, []byte(magic)) {
			return
		}
		got, err := cutList(t, raw)
		want, wantErr := listIn(raw)
		if wantErr == nil && want.Kind == statusKind { // an envelope twice may say two things
			if err == nil {
				t.Fatalf("%q is a Status, and taken for a list", raw)
			}
			return
		}
		switch {
		case err != nil && wantErr != nil:
			return
		case err == nil && wantErr != nil:
			for _, item := range got.items { // broken items are their decoder's business
				if (&corev1.Pod{}).Unmarshal(item) != nil {
					return
				}
			}
			t.Fatalf("%q is taken for a list: %v", raw, wantErr)
		case err != nil: // it may be written in a way in which nobody writes it
			raw = wrap(t, want, "PodList")
			if got, err = cutList(t, raw); err != nil {
				t.Fatalf("%q: %v", raw, err)
			}
		}
		if got.meta != want.ListMeta && got.meta.RemainingItemCount == nil && want.RemainingItemCount == nil {
			t.Fatalf("%q: %v, want %v", raw, got.meta, want.ListMeta)
		}
		if len(got.items) != len(want.Items) {
			t.Fatalf("%q: %d items, want %d", raw, len(got.items), len(want.Items))
		}
		for i := range got.items {
			p := &corev1.Pod{}
			if err := p.Unmarshal(got.items[i]); err != nil || !reflect.DeepEqual(p, &want.Items[i]) {
				t.Fatalf("%q: item %d: %v", raw, i, err)
			}
		}
	})
}

// listIn decodes a list by generated code.
func listIn(raw []byte) (*corev1.PodList, error) {
	var envelope runtime.Unknown
	if err := envelope.Unmarshal(raw[len(magic):]); err != nil {
		return nil, err
	}
	if envelope.Raw == nil {
		return nil, errors.New("no content")
	}
	list := &corev1.PodList{}
	list.Kind = envelope.Kind
	return list, list.Unmarshal(envelope.Raw)
}

func FuzzEventsInProtobufAreCutAsTheyAreDecoded(f *testing.F) {
	frame := watched(f, "ADDED", pod("p", 3), Protobuf)
	f.Add(frame[4:])
	f.Add([]byte("\x08\x01\x12\x08\x0a\x06k8s\x00\x12\x00")) // a type that is a number
	f.Add([]byte("\x0a\x01A\x12\x08\x0a\x06k8s\x00\x10\x01"))
	f.Add([]byte("\x0a\x01A\x12\x10\x0a\x0ek8s\x00\x0a\x03\x12\x01k\x0a\x03\x0a\x01v")) // two types
	f.Add([]byte("\x0a\x01A\x12\x08\x0a\x06k8s\x00\x12\x00\x12\x02\x08\x00"))
	f.Fuzz(func(t *testing.T, raw []byte) {
		got, err := Watch(bytes.NewReader(append(binary.BigEndian.AppendUint32(nil, uint32(len(raw))), raw...)), most).Next()
		var want metav1.WatchEvent
		var envelope runtime.Unknown
		wantErr := want.Unmarshal(raw)
		if wantErr == nil && !bytes.HasPrefix(want.Object.Raw, []byte(magic)) {
			wantErr = errors.New("no envelope")
		}
		if wantErr == nil {
			wantErr = envelope.Unmarshal(want.Object.Raw[len(magic):])
		}
		switch {
		case err == nil && wantErr != nil:
			t.Fatalf("%q is taken for an event: %v", raw, wantErr)
		case err == nil && (string(got.Type) != want.Type || !bytes.Equal(got.Object, envelope.Raw) ||
			got.Kind != envelope.Kind || got.APIVersion != envelope.APIVersion):
			t.Fatalf("%q: %q, want %q", raw, got.Object, envelope.Raw)
		}
	})
}

// readable is the identity of an object that decodes: empty if a part of it is there twice, and
// without what is no UTF-8, for which a decoder of JSON puts something else.
func readable(raw []byte, e Encoding, id Identity) Identity {
	parts := map[string]*string{"name": &id.Name, "namespace": &id.Namespace, "uid": &id.UID, "resourceVersion": &id.Version}
	if e == Protobuf {
		all, n := lastFields(raw)
		last, times := lastFields(all[1])
		if n[1] > 1 || times[1] > 1 || times[3] > 1 || times[5] > 1 || times[6] > 1 {
			return Identity{}
		}
		for key, number := range map[string]protowire.Number{"name": 1, "namespace": 3, "uid": 5, "resourceVersion": 6} {
			if !utf8.Valid(last[number]) {
				*parts[key] = ""
			}
		}
		return id
	}
	all, n := membersOf(raw)
	metadata, times := membersOf(all["metadata"])
	for key, part := range parts {
		if n["metadata"] > 1 || times[key] > 1 {
			return Identity{}
		}
		if !utf8.Valid(metadata[key]) {
			*part = ""
		}
	}
	return id
}

// lastFields returns the fields of bytes of a message, the last of each number, and how many it
// has.
func lastFields(raw []byte) (last map[protowire.Number][]byte, times map[protowire.Number]int) {
	last, times = map[protowire.Number][]byte{}, map[protowire.Number]int{}
	for len(raw) > 0 {
		number, kind, tagged := protowire.ConsumeTag(raw)
		_, _, n := protowire.ConsumeField(raw)
		if n < 0 {
			break
		}
		if kind == protowire.BytesType {
			last[number], _ = protowire.ConsumeBytes(raw[tagged:n])
			times[number]++
		}
		raw = raw[n:]
	}
	return last, times
}

func FuzzTheIdentityIsWhatIsDecoded(f *testing.F) {
	whole, err := pod("p", 9).Marshal()
	if err != nil {
		f.Fatal(err)
	}
	f.Add(whole)
	for _, seed := range []string{
		`{"metadata":{"name":"a","name":"b"},"metadata":{"uid":"u"}}`, `{"metadata":{"n\u0061me":"a","namespace":null}}`,
		"{\"metadata\":{\"name\":\"\xff\\ud800\"}}", `{"Metadata":{"name":"a"}}`, `{"metadata":{"name":7,"uid":"u"}}`,
		"\x0a\x03\x0a\x01n\x0a\x00", "\x0a\x09\x2a\x01u\x0a\x01n\x0a\x01m", "\x0a\x06\x0a\x01\xff\x2a\x01u",
		`{"metadata":{"managedFields":[{"manager":"m"}],"managedFields":[{}],"resourceVersion":"7"}}`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		var p corev1.Pod
		e := Protobuf
		err := p.Unmarshal(raw)
		if err != nil {
			p, e = corev1.Pod{}, JSON
			err = utiljson.Unmarshal(raw, &p)
		}
		_ = DropManagedFields(bytes.Clone(raw), Protobuf)
		_, _ = AppliedFields(raw, Protobuf, "m"), AppliedFields(raw, JSON, "m")
		left := DropManagedFields(bytes.Clone(raw), e)
		got := IdentityOf(raw, e)
		if err != nil {
			return
		}
		want := readable(raw, e, Identity{p.Namespace, p.Name, string(p.UID), p.ResourceVersion})
		if got != want {
			t.Fatalf("%q: %v, want %v", raw, got, want)
		}
		if got := IdentityOf(left, e); got != want {
			t.Fatalf("%q without its managedFields: %v, want %v", raw, got, want)
		}
		var short corev1.Pod
		if e == JSON {
			err = utiljson.Unmarshal(left, &short)
		} else {
			err = short.Unmarshal(left)
		}
		p.ManagedFields, short.ManagedFields = nil, nil
		if err != nil || !reflect.DeepEqual(p, short) {
			t.Fatalf("%q: without its managedFields it is %q: %v", raw, left, err)
		}
	})
}
