package frames

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer/protobuf"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/framer"
	clientscheme "k8s.io/client-go/kubernetes/scheme"
)

func pod(name string, size int) *corev1.Pod {
	p := &corev1.Pod{}
	p.Name, p.Namespace, p.UID, p.ResourceVersion = name, "ns", types.UID("uid-"+name), "7"
	p.Generation = 3
	p.Labels = map[string]string{"a": `with "quotes", \ and {[`}
	grace := int64(30)
	p.DeletionGracePeriodSeconds = &grace
	p.ManagedFields = []metav1.ManagedFieldsEntry{
		{Manager: "m", FieldsV1: metav1.NewFieldsV1(`{"f:managedFields":{}}`)},
		{Manager: strings.Repeat("n", 300)},
	}
	p.Spec.Containers = []corev1.Container{{Name: strings.Repeat("x", size)}}
	return p
}

// wrap is an object as the server sends it in protobuf.
func wrap(t testing.TB, o runtime.Object, kind string) []byte {
	t.Helper()
	o.GetObjectKind().SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind(kind))
	var out bytes.Buffer
	require.NoError(t, protobuf.NewSerializer(clientscheme.Scheme, clientscheme.Scheme).Encode(o, &out))
	return out.Bytes()
}

func inJSON(t testing.TB, o any) []byte {
	t.Helper()
	raw, err := json.Marshal(o)
	require.NoError(t, err)
	return raw
}

func podOf(t testing.TB, raw []byte, e Encoding) *corev1.Pod {
	t.Helper()
	p := &corev1.Pod{}
	if e == Protobuf {
		require.NoError(t, p.Unmarshal(raw))
	} else {
		require.NoError(t, json.Unmarshal(raw, p))
	}
	return p
}

// most is a bound that nothing exceeds.
const most = 64 << 20

var anything = Wanted{MaxObjectBytes: most}

// readers are ways in which an answer may arrive.
var readers = map[string]func(io.Reader) io.Reader{
	"at once": func(r io.Reader) io.Reader { return r }, "byte by byte": iotest.OneByteReader,
	"with its end": iotest.DataErrReader, "in halves": iotest.HalfReader,
}

func TestListsOfBothEncodingsAreTakenApartHoweverTheyArrive(t *testing.T) {
	list := &corev1.PodList{}
	list.ResourceVersion, list.Continue = "9", "more"
	for i := range 5 {
		list.Items = append(list.Items, *pod(fmt.Sprint("p", i), i*bufferSize/2))
	}
	for e, raw := range map[Encoding][]byte{Protobuf: wrap(t, list, "PodList"), JSON: inJSON(t, list)} {
		for name, arrives := range readers {
			var got []corev1.Pod
			m, came, err := List(arrives(bytes.NewReader(raw)), anything, func(raw []byte, e Encoding) error {
				got = append(got, *podOf(t, raw, e))
				return nil
			})
			require.NoError(t, err, "%s %s", e, name)
			assert.Equal(t, e, came)
			assert.Equal(t, list.ListMeta, m)
			assert.Equal(t, list.Items, got)
		}
		for n := range len(raw) - 4 { // what comes last of protobuf says nothing
			if n > 300 && n%997 != 0 {
				continue
			}
			_, _, err := List(bytes.NewReader(raw[:n]), anything, func([]byte, Encoding) error { return nil })
			require.ErrorIs(t, err, io.ErrUnexpectedEOF, "%s cut at %d", e, n)
		}
	}
}

func TestAListMayHaveItsMetadataLastAndNoItems(t *testing.T) {
	for text, want := range map[string]int{
		` {"apiVersion":"v1","items":[ {"a":1} , 2,"}" ,null,[[]] ],"kind":"L","metadata":{"resourceVersion":"9"}}` + "\n": 5,
		`{"it\u0065ms":[1],"met\u0061data":{"resourceVersion":"9"}}`:                                                       1,
		`{"items":null,"metadata":{"resourceVersion":"9"}}`:                                                                0,
		`{"metadata":{"resourceVersion":"9"},"items":[]}`:                                                                  0,
	} {
		n := 0
		m, _, err := List(strings.NewReader(text), anything, func([]byte, Encoding) error { n++; return nil })
		require.NoError(t, err, text)
		assert.Equal(t, want, n, text)
		assert.Equal(t, "9", m.ResourceVersion)
	}
	empty := &corev1.PodList{}
	empty.ResourceVersion = "9"
	m, _, err := List(bytes.NewReader(wrap(t, empty, "PodList")), anything, nil)
	require.NoError(t, err)
	assert.Equal(t, "9", m.ResourceVersion)
}

func TestWhatIsNoListIsAnErrorThatSaysSo(t *testing.T) {
	for _, text := range []string{
		`<html>`, ``, ` `, `[]`, `{}`, `{"items":[]`, `{"items":[]}{"items":[]}`, `{"items":[]}x`, `{"items":nil}`, `{"items":[],"items":[]}`,
		`{"metadata":{},"items":[],"metadata":{}}`, `{"items":[],"it\u0065ms":[1]}`, `{"kind":"A","kind":"B","items":[]}`, `{"items":[],"x":[}}`,
		`{"items":[],1:2}`, `{"items":[],"\u":2}`, `{"items":[],"kind":7}`, `{"kind":"Pod"}`, `{"items":{}}`, `{"items":[1 2]}`, `{"items":[,]}`, `{"items" 1}`, `{"items":[]"a":1}`,
		`{"metadata":7,"items":[]}`, "k9s\x00", "k8s\x00\x07", "k8s\x00\x12\x01\x0a", "k8s\x00\x12\x03\x12\x02\x00",
		"k8s\x00\x12\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff", "k8s\x00\x0a\x01\x07\x12\x00",
		`{"kind":[7},"items":[]}`, `{7:1,"items":[]}`, `{"\q":1,"items":[]}`, `{"items":nothing}`, `{"items":[]}<html>`,
	} {
		_, _, err := List(strings.NewReader(text), anything, func([]byte, Encoding) error { return nil })
		require.Error(t, err, "%q", text)
	}
	enough := errors.New("enough")
	_, _, err := List(strings.NewReader(`{"items":[1,2]}`), anything, func([]byte, Encoding) error { return enough })
	require.ErrorIs(t, err, enough)
}

func TestG8AListWhoseItemsHaveAWrongWireTypeIsNotEmpty(t *testing.T) {
	for what, text := range map[string]string{
		"items that are a number": "k8s\x00\x12\x02\x10\x01", "metadata that is a number": "k8s\x00\x12\x02\x08\x01",
		"content that is a number": "k8s\x00\x10\x01\x12\x00", "a kind that is a number": "k8s\x00\x08\x01\x12\x00",
	} {
		_, _, err := List(strings.NewReader(text), anything, ignore)
		require.ErrorIs(t, err, errSyntax, what)
	}
}

func TestAMemberThatIsThereTwiceIsAnError(t *testing.T) {
	for _, text := range []string{
		`{"items":[1],"\u0069tems":[]}`, "k8s\x00\x12\x00\x12\x00", "k8s\x00\x0a\x00\x0a\x00\x12\x00",
		"k8s\x00\x0a\x06\x12\x01k\x12\x01l\x12\x00",
	} {
		_, _, err := List(strings.NewReader(text), anything, ignore)
		require.ErrorIs(t, err, errSyntax)
		require.ErrorContains(t, err, "twice", text)
	}
	for _, text := range []string{
		`{"type":"A","object":{},"type":"B"}`, `{"type":"A","object":{},"object":{}}`, `{"type":null,"type":"A","object":{}}`,
		"\x00\x00\x00\x06\x0a\x01A\x0a\x01B", "\x00\x00\x00\x04\x12\x00\x12\x00",
		"\x00\x00\x00\x0c\x12\x0a\x0a\x08k8s\x00\x12\x00\x12\x00",
	} {
		_, err := Watch(strings.NewReader(text), most).Next()
		require.ErrorIs(t, err, errSyntax)
		require.ErrorContains(t, err, "twice", text)
	}
}

func TestAKeyMayBeWrittenWithEscapes(t *testing.T) {
	event, err := Watch(strings.NewReader(`{"typ\u0065":"A","obj\u0065ct":1}`), most).Next()
	require.NoError(t, err)
	assert.Equal(t, "A", string(event.Type))
	assert.Equal(t, "1", string(event.Object))
	assert.Equal(t, "n", IdentityOf([]byte(`{"met\u0061data":{"n\u0061me":"n"}}`), JSON).Name)
}

func TestAKeyWithAControlCharacterIsNoJSONAndAnError(t *testing.T) {
	for _, c := range []string{"\v", "\t", "\x00", "\x1f"} {
		_, _, err := List(strings.NewReader(`{"a`+c+`":"","items":[]}`), anything, ignore)
		require.ErrorIs(t, err, errSyntax, "%q in a list", c)
		_, err = Watch(strings.NewReader(`{"type":"A","object":{},"a`+c+`":""}`), most).Next()
		require.ErrorIs(t, err, errSyntax, "%q in an event", c)
		require.ErrorContains(t, err, "control character")
		assert.Empty(t, IdentityOf([]byte(`{"a`+c+`":"","metadata":{"name":"n"}}`), JSON))
	}
	_, _, err := List(strings.NewReader(`{"a\t\u000b":"","items":[]}`), anything, ignore)
	require.NoError(t, err, "with escapes it is JSON")
}

func TestAFieldOfAListIsWrittenAsItIsCalled(t *testing.T) {
	m, _, err := List(strings.NewReader(`{"metadata":{"Continue":"x"},"items":[]}`), anything, ignore)
	require.NoError(t, err)
	assert.Empty(t, m.Continue)
}

func watched(t testing.TB, kind string, o runtime.Object, e Encoding) []byte {
	t.Helper()
	if e == JSON {
		return append(inJSON(t, metav1.WatchEvent{Type: kind, Object: runtime.RawExtension{Object: o}}), '\n')
	}
	raw, err := (&metav1.WatchEvent{Type: kind, Object: runtime.RawExtension{Raw: wrap(t, o, "Pod")}}).Marshal()
	require.NoError(t, err)
	var out bytes.Buffer
	_, err = framer.NewLengthDelimitedFrameWriter(&out).Write(raw)
	require.NoError(t, err)
	return out.Bytes()
}

func TestEventsOfBothEncodingsAreTakenApartHoweverTheyArrive(t *testing.T) {
	for _, e := range []Encoding{Protobuf, JSON} {
		var all []byte
		var want []*corev1.Pod
		for i := range 4 {
			p := pod(fmt.Sprint("p", i), i*bufferSize)
			all = append(all, watched(t, "ADDED", p, e)...)
			p.TypeMeta = metav1.TypeMeta{}
			want = append(want, p)
		}
		for name, arrives := range readers {
			events := Watch(arrives(bytes.NewReader(all)), most)
			for _, p := range want {
				event, err := events.Next()
				require.NoError(t, err, "%s %s", e, name)
				assert.Equal(t, "ADDED", string(event.Type))
				assert.Equal(t, e, event.Encoding)
				got := podOf(t, event.Object, e)
				got.TypeMeta = metav1.TypeMeta{}
				assert.Equal(t, p, got)
			}
			_, err := events.Next()
			require.Equal(t, io.EOF, err, "the very error")
		}
		events := Watch(bytes.NewReader(all[:len(all)-2]), most)
		var err error
		for err == nil {
			_, err = events.Next()
		}
		require.Equal(t, io.ErrUnexpectedEOF, err)
	}
}

func TestWhatIsNoEventIsAnErrorThatSaysSo(t *testing.T) {
	for _, text := range []string{"<html>", "{}", `{"type":7,"object":{}}`, "\x05\x00\x00\x00", "\x00\x00\x00\x00", "\x00\x00\x00\x02\x0a\x05", "\x04\x00\x00\x01",
		`{"type":"A","object":{},"x":[7}}`, "\x00\x00\x00\x0a\x08\x01\x12\x06\x0a\x04k8s\x00", "\x00\x00\x00\x04\x12\x02\x08\x01",
		"\x00\x00\x00\x0a\x12\x08\x0a\x06k8s\x00\x10\x01", "\x00\x00\x00\x0b\x12\x09\x0a\x07k8s\x00\x0a\x01\x07",
	} {
		_, err := Watch(strings.NewReader(text), most).Next()
		require.Error(t, err, "%q", text)
	}
}

func TestManagedFieldsGoAndTheRestStays(t *testing.T) {
	want := pod("p", 200)
	want.ManagedFields = nil
	p := pod("p", 200)
	proto, err := p.Marshal()
	require.NoError(t, err)
	for e, raw := range map[Encoding][]byte{JSON: inJSON(t, p), Protobuf: proto} {
		left := DropManagedFields(raw, e)
		assert.Equal(t, want, podOf(t, left, e))
		assert.NotContains(t, string(left), "nnnn")
		assert.Equal(t, want, podOf(t, DropManagedFields(left, e), e), "there are none any more")
	}
	for _, text := range []string{"", "x", `{"metadata":7}`, `{"metadata":{"managedFields":[]}}`, "\x0a", "\x0a\xff", "\x0a\x02\x8a\x01"} {
		assert.Equal(t, text, string(DropManagedFields([]byte(text), JSON)))
		assert.Equal(t, text, string(DropManagedFields([]byte(text), Protobuf)))
	}
}

func TestWhatAManagerHasAppliedIsReadFromTheBytesOfAnObject(t *testing.T) {
	p := pod("p", 200)
	apply, fields := metav1.ManagedFieldsOperationApply, `{"f:metadata":{"f:labels":{"f:a":{}}}}`
	entry := func(manager string, operation metav1.ManagedFieldsOperationType, subresource, fields string) {
		p.ManagedFields = append(p.ManagedFields, metav1.ManagedFieldsEntry{
			Manager: manager, Operation: operation, Subresource: subresource, APIVersion: "v1", FieldsType: "FieldsV1",
			Time: &metav1.Time{}, FieldsV1: metav1.NewFieldsV1(fields),
		})
	}
	entry("other", apply, "", `{"f:other":{}}`)
	entry("me", metav1.ManagedFieldsOperationUpdate, "", `{"f:updated":{}}`)
	entry("me", apply, "status", `{"f:status":{}}`)
	entry("me", apply, "", fields)
	entry("none", metav1.ManagedFieldsOperationUpdate, "", `{"f:updated":{}}`)
	p.ManagedFields = append(p.ManagedFields, metav1.ManagedFieldsEntry{Manager: "empty", Operation: apply})
	proto, err := p.Marshal()
	require.NoError(t, err)
	for e, raw := range map[Encoding][]byte{JSON: inJSON(t, p), Protobuf: proto} {
		got := AppliedFields(raw, e, "me")
		assert.Equal(t, fields, string(got), "%v", e)
		for _, manager := range []string{"none", "empty", "absent", ""} {
			assert.Nil(t, AppliedFields(raw, e, manager), "%s in %v", manager, e)
		}
		DropManagedFields(raw, e)
		assert.Equal(t, fields, string(got), "it is a copy")
	}
	for _, text := range []string{"", "x", `{"metadata":7}`, `{"metadata":{"managedFields":[]}}`, `{"metadata":{"managedFields":7}}`, "\x0a", "\x0a\xff", "\x0a\x02\x8a\x01"} {
		assert.Nil(t, AppliedFields([]byte(text), JSON, "me"))
		assert.Nil(t, AppliedFields([]byte(text), Protobuf, "me"))
	}
}

func TestTheIdentityOfABrokenObjectIsReadAsFarAsItGoes(t *testing.T) {
	id := Identity{Namespace: "ns", Name: "n", UID: "u", Version: "7"}
	for text, want := range map[string]Identity{
		`{"spec":7,"metadata":{"labels":7,"name":"n","namespace":"ns","uid":"u","resourceVersion":"7"}}`: id,
		`{"metadata":{"name":7,"uid":"u"}}`: {UID: "u"}, `{"metadata":7}`: {}, `{`: {},
	} {
		assert.Equal(t, want, IdentityOf([]byte(text), JSON), text)
	}
	for _, twice := range []string{
		`{"metadata":{"name":"n"},"metadata":{"name":"m"}}`, `{"metadata":{"name":"n","uid":"u","name":"m"}}`,
		`{"metadata":{"name":"n"},"metad\u0061ta":{"name":"m"}}`,
	} {
		assert.Equal(t, Identity{}, IdentityOf([]byte(twice), JSON), twice)
	}
	assert.Equal(t, Identity{UID: "u"}, IdentityOf([]byte(`{"metadata":{"name":"n`+"\xff"+`","uid":"u"}}`), JSON))
	p := pod("n", 1)
	p.UID = "u"
	raw, err := p.Marshal()
	require.NoError(t, err)
	assert.Equal(t, id, IdentityOf(append(raw, 0x12, 0x7f), Protobuf), "cut off behind the metadata")
	for _, twice := range []string{"\x0a\x03\x0a\x01n\x0a\x00", "\x0a\x09\x2a\x01u\x0a\x01n\x0a\x01m"} {
		assert.Equal(t, Identity{}, IdentityOf([]byte(twice), Protobuf), "%q", twice)
	}
	assert.Equal(t, Identity{UID: "u"}, IdentityOf([]byte("\x0a\x06\x0a\x01\xff\x2a\x01u"), Protobuf))
}

// Without this, one bracket or quote that was garbled would swallow all later events.
func TestG5AnEventThatWasGarbledDoesNotSwallowTheNextOne(t *testing.T) {
	for _, text := range []string{`{"type":"A","object":{}`, `{"type":"A","object":{"a":["b"}}`, `{"type":"A","object":{"a":"b}}`} {
		waits, write := io.Pipe()
		go func() { _, _ = write.Write([]byte(text + "\n" + `{"type":"B","object":{}}` + "\n")) }()
		_, err := Watch(waits, most).Next()
		require.ErrorIs(t, err, errSyntax, text)
		_ = waits.Close()
	}
	_, err := Watch(strings.NewReader(`{"type":"A","object":{"a":"b\`+"\n"), most).Next()
	require.ErrorIs(t, err, errSyntax, "a backslash does not make a part of the text of the line's end")
}

// Garbage has no line's end, and no quote. Nothing else may come after it.
func TestG5GarbageInAnEventIsFoundBeforeItEnds(t *testing.T) {
	for _, text := range []string{"{\"a\":\"b\x01\x02", "{\"a\"\x1f\x01", "{\"a\":[\x0e"} {
		_, err := Watch(strings.NewReader(`{"type":"A","object":`+text), most).Next()
		require.ErrorIs(t, err, errSyntax, "%q", text)
	}
}
