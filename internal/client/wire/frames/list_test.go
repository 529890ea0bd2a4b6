package frames

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/encoding/protowire"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// ignore takes an item.
func ignore([]byte, Encoding) error { return nil }

func TestAListIsAskedWhatItIsWhereverItSaysSo(t *testing.T) {
	list := &corev1.PodList{Items: []corev1.Pod{*pod("p", 3)}}
	refused := errors.New("refused")
	for text, want := range map[string]string{
		`{"apiVersion":"v1","kind":"PodList","items":[1]}`: "v1 PodList",
		`{"items":[1],"kind":"PodList","apiVersion":"v1"}`: "v1 PodList",
		`{"k\u0069nd":"A","apiVersion":"b","items":null}`:  "b A",
		`{"kind":"PodList","items":[1]}`:                   " PodList",
		`{"apiVersion":"v1","items":[]}`:                   "v1 ",
		`{"items":[]}`:                                     " ",
		string(wrap(t, list, "PodList")):                   "v1 PodList",
		"k8s\x00\x12\x00":                                  " ",
		"k8s\x00\x12\x00\x0a\x06\x0a\x01v\x12\x01k":        "v k",
	} {
		for _, answer := range []error{nil, refused} {
			var asked []string
			_, _, err := List(strings.NewReader(text), Wanted{Accept: func(apiVersion, kind string) error {
				asked = append(asked, apiVersion+" "+kind)
				return answer
			}}, ignore)
			require.ErrorIs(t, err, answer, "%q", text)
			assert.Equal(t, []string{want}, asked, "%q", text)
		}
	}
}

func TestAListThatIsNotWantedIsNotReadAnyFurther(t *testing.T) {
	rest := &endless{c: '1'}
	refused := errors.New("refused")
	w := Wanted{Accept: func(string, string) error { return refused }}
	_, _, err := List(io.MultiReader(strings.NewReader(`{"kind":"SecretList","apiVersion":"v1","items":[`), rest), w, ignore)
	require.ErrorIs(t, err, refused)
	assert.Zero(t, rest.read)
}

func TestAStatusInPlaceOfAListIsQuoted(t *testing.T) {
	status := &metav1.Status{Status: metav1.StatusFailure, Message: "no such luck", Reason: metav1.StatusReasonForbidden}
	long := &metav1.Status{Message: strings.Repeat("x", 2*maxQuoted)}
	as := func(s *metav1.Status) [][]byte {
		proto := wrap(t, s, statusKind)
		s.Kind, s.APIVersion = statusKind, "v1"
		return [][]byte{inJSON(t, s), proto}
	}
	for i, raw := range as(status) {
		_, _, err := List(bytes.NewReader(raw), Wanted{}, ignore)
		assert.ErrorContains(t, err, `a Status in place of a list, though the request succeeded: Forbidden "no such luck"`, i)
	}
	for i, raw := range as(long) {
		_, _, err := List(bytes.NewReader(raw), Wanted{}, ignore)
		require.Error(t, err)
		assert.Less(t, len(err.Error()), 2*maxQuoted, i)
	}
	_, _, err := List(strings.NewReader(`{"message":{"a":1},"kind":"Status","items":[]}`), Wanted{}, ignore)
	assert.ErrorContains(t, err, "a Status in place of a list")
}

func TestWhatAListHasTwiceIsAnErrorInProtobufToo(t *testing.T) {
	for name, raw := range map[string]string{
		"content": "k8s\x00\x12\x00\x12\x00", "type": "k8s\x00\x0a\x00\x0a\x00\x12\x00", "metadata": "k8s\x00\x12\x04\x0a\x00\x0a\x00",
	} {
		_, _, err := List(strings.NewReader(raw), Wanted{}, ignore)
		assert.ErrorContains(t, err, "a list with "+name+" twice")
	}
}

// members is a list whose members never end.
type members struct{ n int }

func (m *members) Read(p []byte) (int, error) {
	m.n++
	return copy(p, fmt.Sprintf(`,"m%d":0`, m.n)), nil
}

func TestMembersAndWhiteSpaceThatNeverEndAreReadUpToABound(t *testing.T) {
	more := &members{}
	_, _, err := List(io.MultiReader(strings.NewReader(`{"items":[]`), more), Wanted{}, ignore)
	assert.ErrorContains(t, err, "a list with more than 100 members")
	assert.Less(t, more.n, 2*maxMembers)
	for _, before := range []string{"", `{"items":[`, `{"items":[1`, `{"items":[]}`} {
		rest := &endless{c: ' '}
		_, _, err := List(io.MultiReader(strings.NewReader(before), rest), Wanted{MaxObjectBytes: 100_000}, ignore)
		require.ErrorIs(t, err, ErrTooLarge, "%q", before)
		assert.LessOrEqual(t, rest.read, 200_000, "%q", before)
	}
}

func TestAPageInPlaceOfAListIsCalledOne(t *testing.T) {
	_, _, err := List(strings.NewReader("<!DOCTYPE html><html>Sign in</html>"), Wanted{}, ignore)
	assert.ErrorContains(t, err, "a page in place of a list, perhaps of a proxy")
}

func TestTheMetadataOfAListAreToldBeforeItsItemsIfTheyComeBefore(t *testing.T) {
	list := &corev1.PodList{Items: []corev1.Pod{*pod("p", 3)}}
	list.Continue = "next"
	behind := func(raw []byte) string { // the list's metadata, behind its items
		meta, err := list.ListMeta.Marshal()
		require.NoError(t, err)
		one := protowire.AppendBytes(protowire.AppendTag(nil, listItems, protowire.BytesType), raw)
		one = protowire.AppendBytes(protowire.AppendTag(one, listMeta, protowire.BytesType), meta)
		return magic + string(protowire.AppendBytes(protowire.AppendTag(nil, unknownRaw, protowire.BytesType), one))
	}
	for text, before := range map[string]bool{
		`{"metadata":{"continue":"next"},"items":[1]}`: true,
		`{"items":[1],"metadata":{"continue":"next"}}`: false,
		string(wrap(t, list, "PodList")):               true,
		behind([]byte("pod")):                          false,
	} {
		var came []string
		m, _, err := List(strings.NewReader(text), Wanted{Head: func(m metav1.ListMeta) { came = append(came, m.Continue) }},
			func([]byte, Encoding) error {
				came = append(came, "item")
				return nil
			})
		require.NoError(t, err, "%q", text)
		assert.Equal(t, "next", m.Continue, "%q", text)
		want := []string{"item"}
		if before {
			want = []string{"next", "item"}
		}
		assert.Equal(t, want, came, "%q", text)
	}
}
