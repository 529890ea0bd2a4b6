package rights

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"pgregory.net/rapid"
)

// TestModelRolesAllowWhatTheRightsDoAndNothingElse takes the roles apart again.
func TestModelRolesAllowWhatTheRightsDoAndNothingElse(t *testing.T) {
	words := func(all ...string) *rapid.Generator[string] { return rapid.SampledFrom(all) }
	one := rapid.Custom(func(t *rapid.T) Right {
		return Right{
			words("get", "list").Draw(t, "verb"), words("", "apps").Draw(t, "group"), words("a", "b", "b/status").Draw(t, "resource"),
			words("", "n", "m").Draw(t, "namespace"), words("", "x", "y").Draw(t, "name"),
		}
	})
	rapid.Check(t, func(t *rapid.T) {
		given := rapid.SliceOf(one).Draw(t, "rights")
		set, backwards := &Set{}, &Set{}
		for i, r := range given {
			set.Add(r, r.Verb)
			backwards.Add(given[len(given)-1-i], given[len(given)-1-i].Verb)
		}
		cluster, namespaced := set.Roles("name")
		again, others := backwards.Roles("name")
		assert.Equal(t, cluster, again)
		assert.Equal(t, namespaced, others)
		var allowed []Right
		take := func(namespace string, groups, resources, names, verbs []string) {
			if names == nil {
				names = []string{""}
			}
			for _, resource := range resources {
				for _, name := range names {
					for _, verb := range verbs {
						allowed = append(allowed, Right{verb, groups[0], resource, namespace, name})
					}
				}
			}
		}
		if cluster != nil {
			for _, r := range cluster.Rules {
				take("", r.APIGroups, r.Resources, r.ResourceNames, r.Verbs)
			}
		}
		for _, role := range namespaced {
			for _, r := range role.Rules {
				take(role.Namespace, r.APIGroups, r.Resources, r.ResourceNames, r.Verbs)
			}
		}
		covered := func(r Right, by []Right) (n int) {
			for _, other := range by {
				if other.covers(r) {
					n++
				}
			}
			return n
		}
		for _, r := range given {
			assert.Positive(t, covered(r, allowed), "%v", r)
		}
		for _, r := range allowed {
			assert.Contains(t, given, r)
			for _, other := range allowed {
				assert.False(t, r != other && other.covers(r), "%v is not needed beside %v", r, other)
			}
		}
		assert.ElementsMatch(t, set.Rights(), allowed)
	})
}

func TestWhatAFenceNeedsCountsUnderALeaseAlone(t *testing.T) {
	set := &Set{}
	assert.NoError(t, set.Use(Target{Resource: "a", Name: "x"}, "patch"))
	patch, get := Right{"patch", "", "a", "", "x"}, Right{"get", "", "a", "", "x"}
	assert.Equal(t, []Right{patch}, set.Rights())
	set.Lease()
	assert.Equal(t, []Right{get, patch}, set.Rights())
}

func TestAClientThatReadsBeforeItDeletesMayRead(t *testing.T) {
	set := &Set{}
	assert.NoError(t, set.Use(Target{Resource: "a", Reads: true}, "delete"))
	assert.Equal(t, []Right{{"delete", "", "a", "", ""}, {"get", "", "a", "", ""}}, set.Rights())
}
