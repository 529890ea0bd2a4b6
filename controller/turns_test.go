package controller_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestARootIsReconciledWithWhatItControlsAndWhatHasItsKeyAndWhatIsForAll(t *testing.T) {
	inWorld(t, func(w *world) {
		w.root("a", "u1", "1")
		w.root("b", "u2", "1")
		w.owns("a", "u1", "a-1")
		w.owns("a", "u1", "a-2")
		w.secret("s", "ns.b")
		c := &calls{}
		r := run(w, c.reconcile, bySecret)
		assert.Equal(t, []string{"ns/a u1=1 +a-1 +a-2", "ns/b u2=1"}, c.taken())
		w.root("b", "u2", "2")
		r.runs()
		assert.Equal(t, []string{"ns/b u2=2"}, c.taken())
		r.stop()
	})
}
