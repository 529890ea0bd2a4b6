//go:build !kates_safe

package wire

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/kates-go/kates/internal/client/wire/frames"
	objects "github.com/kates-go/kates/internal/object"
	"github.com/kates-go/kates/internal/test/suite/realistic"
)

func TestObjectsThatSharePartsAreThoseThatDoNot(t *testing.T) {
	sharing := sharingDecoder()
	require.NotNil(t, sharing.parts)
	for i := range 20 {
		for _, e := range []frames.Encoding{frames.Protobuf, frames.JSON} {
			raw := encoded(t, realistic.Restarted(realistic.Pod(i%3), i), e)
			want, err := podDecoder().decode(slices.Clone(raw), e)
			require.NoError(t, err)
			got, err := sharing.decode(slices.Clone(raw), e)
			require.NoError(t, err)
			sharing.Compact(got, want, true)
			assert.Equal(t, want, got)
		}
	}
}

func TestAnObjectThatDoesNotDecodeIsTheSameWhereObjectsShareParts(t *testing.T) {
	whole := encoded(t, realistic.Pod(1), frames.Protobuf)
	for _, raw := range [][]byte{whole[:len(whole)-1], append(slices.Clone(whole), 2<<3|2, 2, 2<<3, 1), nil, {1<<3 | 2, 0}} {
		want, silent, wantErr := podDecoder().item(slices.Clone(raw), frames.Protobuf)
		got, gotSilent, err := sharingDecoder().item(slices.Clone(raw), frames.Protobuf)
		assert.Equal(t, wantErr, err)
		assert.Equal(t, silent, gotSilent)
		if want != nil {
			assert.Equal(t, objects.Fault(want).Error(), objects.Fault(got).Error())
			assert.Equal(t, want.GetName(), got.GetName())
		}
	}
}

func TestG10WhatObjectsShareIsNotTouchedWhenTheyAreStored(t *testing.T) {
	d := sharingDecoder()
	var pods []objects.Object
	for i := range 10 {
		p := realistic.Pod(7)
		p.Name = fmt.Sprint("p", i)
		o, err := d.decode(encoded(t, p, frames.Protobuf), frames.Protobuf)
		require.NoError(t, err)
		pods = append(pods, o)
	}
	own, err := runtime.DefaultUnstructuredConverter.ToUnstructured(pods[0])
	require.NoError(t, err)
	written, err := d.Typed(&unstructured.Unstructured{Object: own})
	require.NoError(t, err)
	before, err := podDecoder().decode(encoded(t, realistic.Pod(7), frames.Protobuf), frames.Protobuf)
	require.NoError(t, err)
	for _, o := range append(pods, written) {
		was := unsafe.StringData(o.GetGenerateName())
		d.Compact(o, before, true)
		assert.Same(t, was, unsafe.StringData(o.GetGenerateName()))
	}
}

// newMetadataSource is a source of the metadata of pods.
func newMetadataSource() *metadataSource {
	r := &restSource{resource: podDecoder().resource}
	return &metadataSource{rest: r, whole: r}
}

// TestMetadataThatSharesPartsIsThatWhichDoesNot decodes the metadata of pods of one template, of
// which each has managed fields. A table forgets a part if two others hash to the same place, by
// chance: so there are several tables.
func TestMetadataThatSharesPartsIsThatWhichDoesNot(t *testing.T) {
	shares := false
	for range 10 {
		sharing := newMetadataSource()
		sharing.Shared()
		require.NotNil(t, sharing.parts)
		last := metadataAsUnshared(t, sharing)
		again, err := sharing.read(shortened(t, last.ObjectMeta, frames.Protobuf), frames.Protobuf)
		require.NoError(t, err)
		shares = shares || reflect.ValueOf(last.Labels).Pointer() == reflect.ValueOf(again.Labels).Pointer() &&
			unsafe.SliceData(last.OwnerReferences) == unsafe.SliceData(again.OwnerReferences)

		_, _, err = sharing.decode([]byte{1<<3 | 2, 0}, frames.Protobuf)
		_, _, want := newMetadataSource().decode([]byte{1<<3 | 2, 0}, frames.Protobuf)
		assert.Equal(t, want, err)
		within := sharing.Within("a").(*metadataSource)
		assert.Same(t, sharing.parts, within.parts, "a namespace shares with the others")
	}
	assert.True(t, shares)
}

// metadataAsUnshared decodes metadata of pods that have the same labels and owners, and compares
// it with that of a source which shares nothing. It returns the last one.
func metadataAsUnshared(t *testing.T, sharing *metadataSource) (last *metav1.PartialObjectMetadata) {
	t.Helper()
	for i := range 6 {
		p := realistic.Pod(i)
		p.Labels, p.OwnerReferences = realistic.Pod(0).Labels, realistic.Pod(0).OwnerReferences
		for _, e := range []frames.Encoding{frames.JSON, frames.Protobuf} {
			raw := shortened(t, p.ObjectMeta, e)
			want, silent, err := newMetadataSource().decode(slices.Clone(raw), e)
			require.NoError(t, err)
			got, gotSilent, err := sharing.decode(slices.Clone(raw), e)
			require.NoError(t, err)
			assert.Equal(t, want, got)
			assert.Equal(t, silent, gotSilent)
			last = got.(*metav1.PartialObjectMetadata)
		}
	}
	return last
}

// shortened is metadata as a server sends it.
func shortened(t *testing.T, m metav1.ObjectMeta, e frames.Encoding) []byte {
	t.Helper()
	o := &metav1.PartialObjectMetadata{ObjectMeta: m}
	raw, err := json.Marshal(o)
	if e == frames.Protobuf {
		raw, err = o.Marshal()
	}
	require.NoError(t, err)
	return raw
}

func TestAnObjectTakesNothingFromWhatIsOfAnotherType(t *testing.T) {
	long := func() string { return strings.Repeat("too long for the table", 100) }
	d := podDecoder()
	of := func(o objects.Object) objects.Object { o.SetGenerateName(long()); return o }
	before := of(&corev1.Pod{})
	for _, other := range []objects.Object{
		nil, of(&corev1.ConfigMap{}), objects.Undecoded(d.resource, objects.Key{Name: "x"}, "uid", "1", nil, objects.Original{}, errors.New("bad")), before,
	} {
		for _, o := range []objects.Object{of(&corev1.Pod{}), of(&corev1.Secret{})} {
			d.Compact(o, other, true)
			assert.Equal(t, long(), o.GetGenerateName())
			_, pod := o.(*corev1.Pod)
			taken := unsafe.StringData(before.GetGenerateName()) == unsafe.StringData(o.GetGenerateName())
			assert.Equal(t, other == before && pod, taken, "%T after %T", o, other)
			if other != nil && other != before {
				assert.NotSame(t, unsafe.StringData(other.GetGenerateName()), unsafe.StringData(o.GetGenerateName()))
			}
		}
	}
}
