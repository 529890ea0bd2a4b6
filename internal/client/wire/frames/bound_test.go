package frames

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
)

// endless repeats a byte for ever, and counts.
type endless struct {
	c    byte
	read int
}

func (e *endless) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = e.c
	}
	e.read += len(p)
	return len(p), nil
}

func TestAPieceThatNeverEndsIsReadUpToTheBound(t *testing.T) {
	const bound = 100_000
	starts := map[string]string{
		"a value of a list": `{"metadata":{},"x":"`, "an item": `{"items":[{"a":"`, "its key": `{"`,
		"a number": `{"items":[1`, "the metadata": `{"metadata":{"continue":"`,
		"an item in protobuf":  "k8s\x00\x12\xff\xff\xff\xff\x07\x12\xff\xff\xff\xff\x06",
		"metadata in protobuf": "k8s\x00\x12\xff\xff\xff\xff\x07\x0a\xff\xff\xff\xff\x06",
	}
	for name, start := range starts {
		rest := &endless{c: '1'}
		_, _, err := List(io.MultiReader(strings.NewReader(start), rest), Wanted{MaxObjectBytes: bound}, ignore)
		require.ErrorIs(t, err, ErrTooLarge, name)
		assert.LessOrEqual(t, rest.read, 2*bound, name)
		if strings.HasSuffix(name, "protobuf") {
			assert.LessOrEqual(t, rest.read, bufferSize, "its length is known before it is read")
		}
	}
	for name, start := range map[string]string{
		"an event": `{"type":"ADDED","object":{"a":"`, "a frame": "\x08\x00\x00\x00",
	} {
		rest := &endless{c: '1'}
		_, err := Watch(io.MultiReader(strings.NewReader(start), rest), bound).Next()
		require.ErrorIs(t, err, ErrTooLarge, name)
		assert.LessOrEqual(t, rest.read, 2*bound, name)
	}
}

func TestTheBoundIsForEachObjectAndNotForAllOfThem(t *testing.T) {
	list := &corev1.PodList{}
	var events [2][]byte
	for i := range 9 {
		list.Items = append(list.Items, *pod(fmt.Sprint("p", i), 3000))
		for j, e := range []Encoding{JSON, Protobuf} {
			events[j] = append(events[j], watched(t, "ADDED", &list.Items[i], e)...)
		}
	}
	longest := int64(len(watched(t, "ADDED", &list.Items[0], JSON)))
	for _, raw := range [][]byte{inJSON(t, list), wrap(t, list, "PodList")} {
		n := 0
		_, _, err := List(bytes.NewReader(raw), Wanted{MaxObjectBytes: longest}, func(raw []byte, e Encoding) error {
			n++
			return nil
		})
		require.NoError(t, err)
		assert.Equal(t, 9, n)
	}
	for _, raw := range events {
		in := Watch(bytes.NewReader(raw), longest)
		for range 9 {
			_, err := in.Next()
			require.NoError(t, err)
		}
	}
	exact, err := json.Marshal(pod("p", 3000))
	require.NoError(t, err)
	text := fmt.Sprintf(`{"items":[%s]}`, exact)
	_, _, err = List(strings.NewReader(text), Wanted{MaxObjectBytes: int64(len(exact))}, ignore)
	require.NoError(t, err, "an object of just that size")
	_, _, err = List(strings.NewReader(text), Wanted{MaxObjectBytes: int64(len(exact)) - 1}, ignore)
	require.ErrorIs(t, err, ErrTooLarge)
}
