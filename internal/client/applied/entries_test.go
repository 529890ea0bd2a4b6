package applied

import (
	"fmt"
	"runtime"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

func mapAt(uid types.UID, version string, owners ...types.UID) *corev1.ConfigMap {
	o := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{UID: uid, ResourceVersion: version}}
	for _, owner := range owners {
		o.OwnerReferences = append(o.OwnerReferences, metav1.OwnerReference{UID: owner})
	}
	return o
}

// fieldsWith are those of an object with these owners.
func fieldsWith(owners ...types.UID) []byte {
	text := `{"f:data":{"f:k":{}},"f:metadata":{"f:ownerReferences":{`
	for i, owner := range owners {
		if i > 0 {
			text += ","
		}
		text += fmt.Sprintf(`"k:{\"uid\":\"%s\"}":{}`, owner)
	}
	return []byte(text + "}}}")
}

func TestWhatAManagerHasAppliedIsKnownOfTheVeryVersionThatWasRead(t *testing.T) {
	var e Entries
	o := mapAt("u", "5", "first", "second")
	_, known := e.Of(o)
	assert.False(t, known)
	e.Put(o, fieldsWith("first", "second"))
	entry, known := e.Of(mapAt("u", "5", "first", "second"))
	require.True(t, known)
	assert.Equal(t, string(fieldsWith("first", "second")), string(entry.Fields()))
	for _, other := range []*corev1.ConfigMap{mapAt("u", "6"), mapAt("u", "4"), mapAt("v", "5")} {
		_, known = e.Of(other)
		assert.False(t, known, "%s at %s", other.UID, other.ResourceVersion)
	}
	next := mapAt("u", "6")
	e.Put(next, []byte(`{}`))
	_, known = e.Of(o)
	assert.False(t, known, "a newer version has come")
	entry, _ = e.Of(next)
	assert.Equal(t, `{}`, string(entry.Fields()))
	for _, fake := range []*corev1.ConfigMap{mapAt("", "5"), mapAt("f", "")} {
		e.Put(fake, fieldsWith())
		_, known = e.Of(fake)
		assert.False(t, known, "it names no version of an object")
	}
	runtime.KeepAlive(o)
}

func TestFieldsThatDifferByTheirOwnersAloneAreInMemoryOnce(t *testing.T) {
	var e Entries
	a, b := mapAt("a", "5", "root-a", "other"), mapAt("b", "5", "root-b", "other")
	e.Put(a, fieldsWith("root-a", "other"))
	e.Put(b, fieldsWith("root-b", "other"))
	assert.Equal(t, e.of["a"].fields, e.of["b"].fields)
	entry, _ := e.Of(b)
	assert.Equal(t, string(fieldsWith("root-b", "other")), string(entry.Fields()))
}

func TestG3WhatIsKnownOfAppliesIsBoundedByTheObjectsThatAreHeld(t *testing.T) {
	var e Entries
	held := make([]*corev1.ConfigMap, 10)
	for i := range held {
		held[i] = mapAt(types.UID(fmt.Sprint("held", i)), "5")
		e.Put(held[i], fieldsWith())
		e.Put(mapAt(held[i].UID, "5"), fieldsWith()) // a stream that has this version drops another
	}
	for i := range 1023 - len(held) { // which nobody holds
		e.Put(mapAt(types.UID(fmt.Sprint("gone", i)), "5"), fieldsWith())
	}
	require.Len(t, e.of, 1023)
	runtime.GC()
	last := mapAt("last", "5")
	e.Put(last, fieldsWith())
	assert.Len(t, e.of, len(held)+1)
	for _, o := range held {
		_, known := e.Of(o)
		assert.True(t, known)
	}
	runtime.KeepAlive(last)
}
