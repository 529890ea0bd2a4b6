package testserver

import (
	"net/http"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kates-go/kates/kates/katestest/internal/testserver/store"
)

const blocking = ", blockOwnerDeletion: true"

func TestTheCollectorDeletesWhatHasLostItsOwners(t *testing.T) {
	inBubble(t, func(s tested) {
		s.Control()
		a := s.made(configMaps, "a", "")
		b := s.made(configMaps, "b", owned("a", a, ""))
		s.made(configMaps, "c", owned("b", b, blocking))
		s.settle()
		require.True(t, s.there(configMaps+"/c"), "its owner is there")

		s.do(http.MethodDelete, configMaps+"/a", "")
		s.settle()
		assert.False(t, s.there(configMaps+"/b"))
		assert.False(t, s.there(configMaps+"/c"), "its owner has lost its own")
	})
}

func TestTheCollectorDeletesWhatNeverHadItsOwner(t *testing.T) {
	inBubble(t, func(s tested) {
		s.Control()
		s.made(configMaps, "a", "")
		s.made(configMaps, "b", owned("none", "nobody", ""))
		s.made(configMaps, "c", owned("a", "nobody", ""))
		s.settle()
		assert.False(t, s.there(configMaps+"/b"))
		assert.False(t, s.there(configMaps+"/c"), "the owner of that name is another one")
		assert.True(t, s.there(configMaps+"/a"))
	})
}

func TestTheCollectorKeepsWhatHasAnotherOwner(t *testing.T) {
	inBubble(t, func(s tested) {
		s.Control()
		a, b := s.made(configMaps, "a", ""), s.made(configMaps, "b", "")
		s.made(configMaps, "c", ", ownerReferences: ["+reference("a", a, "")+", "+reference("b", b, "")+"]")
		s.do(http.MethodDelete, configMaps+"/a?propagationPolicy=Foreground", "")
		s.settle()
		assert.False(t, s.there(configMaps+"/a"))
		left := s.do(http.MethodGet, configMaps+"/c", "").GetOwnerReferences()
		require.Len(t, left, 1, "the lost owner is no owner any more")
		assert.Equal(t, types.UID(b), left[0].UID)
	})
}

func TestTheCollectorKeepsWhatItCannotTell(t *testing.T) {
	inBubble(t, func(s tested) {
		s.Control()
		s.made(configMaps, "a", ", ownerReferences: [{apiVersion: example.com/v1, kind: Thing, name: t, uid: '1'}]")
		s.made(clusterRoles, "a", owned("none", "nobody", ""))
		s.settle()
		assert.True(t, s.there(configMaps+"/a"), "its owner is of a kind that nobody knows")
		assert.True(t, s.there(clusterRoles+"/a"), "its owner is in a namespace, and it is in none")

		s.define("things", "Thing", "{name: v1, served: true, storage: true, "+anything+"}")
		s.settle()
		assert.False(t, s.there(configMaps+"/a"), "now the kind is known, and the owner is not there")
	})
}

func TestTheCollectorOrphansDependents(t *testing.T) {
	inBubble(t, func(s tested) {
		s.Control()
		a := s.made(configMaps, "a", "")
		s.made(configMaps, "b", owned("a", a, blocking))
		s.do(http.MethodDelete, configMaps+"/a?propagationPolicy=Orphan", "")
		s.settle()
		assert.False(t, s.there(configMaps+"/a"))
		assert.Empty(t, s.do(http.MethodGet, configMaps+"/b", "").GetOwnerReferences())
	})
}

func TestAnOwnerInForegroundWaitsForTheDependentsThatBlockIt(t *testing.T) {
	inBubble(t, func(s tested) {
		s.Control()
		a := s.made(configMaps, "a", "")
		s.made(configMaps, "b", owned("a", a, blocking)+", finalizers: [example.com/x]")
		s.made(configMaps, "c", owned("a", a, "")+", finalizers: [example.com/x]")
		s.do(http.MethodDelete, configMaps+"/a?propagationPolicy=Foreground", "")
		s.settle()
		for _, name := range []string{"a", "b", "c"} {
			require.NotNil(t, s.do(http.MethodGet, configMaps+"/"+name, "").GetDeletionTimestamp(), name)
		}
		s.do(http.MethodPatch, configMaps+"/b", "{metadata: {finalizers: null}}")
		s.settle()
		assert.False(t, s.there(configMaps+"/b"))
		assert.False(t, s.there(configMaps+"/a"), "the last one that blocked it is gone")
		assert.True(t, s.there(configMaps+"/c"), "its finalizer keeps it, but it does not block")
	})
}

func TestTheCollectorWaitsUntilItHasNotedTheChangeOfAnObject(t *testing.T) {
	for _, policy := range []string{"Foreground", "Orphan"} {
		t.Run(policy, func(t *testing.T) {
			inBubble(t, func(s tested) {
				a := s.made(configMaps, "a", "")
				c := newCollector(s.Server)
				c.follow()
				s.made(configMaps, "b", owned("a", a, blocking)+", finalizers: [example.com/x]")
				s.do(http.MethodDelete, configMaps+"/a?propagationPolicy="+policy, "")
				c.lookAtDue() // a, as it is stored now, with an index that lacks b
				assert.True(t, s.there(configMaps+"/a"))

				c.follow()
				c.lookAtDue()
				b := s.do(http.MethodGet, configMaps+"/b", "")
				if policy == "Orphan" {
					assert.Empty(t, b.GetOwnerReferences())
				} else {
					assert.NotNil(t, b.GetDeletionTimestamp())
				}
			})
		})
	}
}

func TestDependentsOfDependentsGoInTheForegroundToo(t *testing.T) {
	inBubble(t, func(s tested) {
		s.Control()
		a := s.made(configMaps, "a", "")
		b := s.made(configMaps, "b", owned("a", a, blocking))
		s.made(configMaps, "c", owned("b", b, blocking)+", finalizers: [example.com/x]")
		s.do(http.MethodDelete, configMaps+"/a?propagationPolicy=Foreground", "")
		s.settle()
		assert.True(t, s.there(configMaps+"/a"))
		assert.Equal(t, []string{"foregroundDeletion"}, s.do(http.MethodGet, configMaps+"/b", "").GetFinalizers())
		s.do(http.MethodPatch, configMaps+"/c", "{metadata: {finalizers: null}}")
		s.settle()
		for _, name := range []string{"a", "b", "c"} {
			assert.False(t, s.there(configMaps+"/"+name), name)
		}
	})
}

func TestACircleOfOwnersInForegroundEnds(t *testing.T) {
	inBubble(t, func(s tested) {
		s.Control()
		a := s.made(configMaps, "a", "")
		b := s.made(configMaps, "b", owned("a", a, blocking))
		s.do(http.MethodPatch, configMaps+"/a", "{metadata: {ownerReferences: ["+reference("b", b, blocking)+"]}}")
		s.do(http.MethodDelete, configMaps+"/a?propagationPolicy=Foreground", "")
		s.settle()
		assert.False(t, s.there(configMaps+"/a"))
		assert.False(t, s.there(configMaps+"/b"))
	})
}

func TestTheCollectorFindsWhatWasCompacted(t *testing.T) {
	inBubble(t, func(s tested) {
		a := s.made(configMaps, "a", "")
		s.made(configMaps, "b", owned("a", a, ""))
		s.made(configMaps, "c", owned("none", "nobody", ""))
		s.do(http.MethodDelete, configMaps+"/a", "")
		s.Compact()
		s.Control()
		s.settle()
		assert.False(t, s.there(configMaps+"/b"))
		assert.False(t, s.there(configMaps+"/c"))
	})
}

func TestTheCollectorChangesObjectsInTheirStoredVersion(t *testing.T) {
	inBubble(t, func(s tested) {
		s.Control()
		s.define("things", "Thing", `
			{name: v1, served: true, storage: false, schema: {openAPIV3Schema: {type: object}}},
			{name: v1beta1, served: true, storage: true, schema: {openAPIV3Schema: {type: object, properties: {old: {type: string}}}}}`)
		a, b := s.made(configMaps, "a", ""), s.made(configMaps, "b", "")
		const things = "/apis/example.com/v1beta1/namespaces/default/things"
		s.do(http.MethodPost, things, "{apiVersion: example.com/v1beta1, kind: Thing, old: kept, metadata: {name: t, ownerReferences: ["+
			reference("a", a, "")+", "+reference("b", b, "")+"]}}")
		s.do(http.MethodDelete, configMaps+"/a", "")
		s.settle()
		o := s.do(http.MethodGet, things+"/t", "")
		assert.Len(t, o.GetOwnerReferences(), 1)
		assert.Equal(t, "kept", o.Object["old"], "the newer version does not have it")
	})
}

func TestTheCollectorLeavesWhatHasChangedSinceItLooked(t *testing.T) {
	inBubble(t, func(s tested) {
		s.made(configMaps, "a", ", finalizers: [example.com/x]")
		seen, _ := s.item(store.Key{Resource: "configmaps", Namespace: "default", Name: "a"})
		s.do(http.MethodDelete, configMaps+"/a?propagationPolicy=Orphan", "")
		s.drop(seen, metav1.DeletePropagationBackground)
		assert.Equal(t, []string{"example.com/x", "orphan"}, s.do(http.MethodGet, configMaps+"/a", "").GetFinalizers())
	})
}
