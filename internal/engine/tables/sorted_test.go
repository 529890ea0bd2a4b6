package tables

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kates-go/kates/internal/object"
)

func TestSeekFindsWhatASearchFromTheStartFinds(t *testing.T) {
	sorted := make([]Key, 40)
	for i := range sorted {
		sorted[i].Name = string(rune('a' + 2*i))
	}
	for n := range len(sorted) {
		s := sorted[:n]
		for i := range 2*n + 2 {
			k := Key{Name: string(rune('a' - 1 + i))}
			want, wantFound := slices.BinarySearchFunc(s, k, object.Compare)
			for from := range want + 1 {
				got, found := seek(s, from, k, object.Compare)
				require.Equal(t, want, got, "%q from %d of %d", k.Name, from, n)
				require.Equal(t, wantFound, found)
			}
		}
	}
}

func TestG3ATableGivesBackTheMemoryOfWhatIsGone(t *testing.T) {
	const n = 10_000
	s := make([]Row, n)
	var deleteMost []edit
	for i := range n {
		s[i].Source = &metav1.PartialObjectMetadata{}
		if i%10 != 0 {
			deleteMost = append(deleteMost, edit{at: i, occupied: true})
		}
	}
	kept := splice(s, deleteMost, func(r *Row) Row { return *r })
	require.Len(t, kept, n/10)
	require.Less(t, cap(kept), n/2)
	require.Nil(t, s[n-1].Source, "what is behind the end is not held")
}
