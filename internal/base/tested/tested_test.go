package tested

import (
	"net/http"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/assert"
)

func TestABubbleIsFoundOutFromWithin(t *testing.T) {
	assert.False(t, InBubble())
	synctest.Test(t, func(t *testing.T) {
		assert.True(t, InBubble())
		within := make(chan bool)
		go func() { within <- InBubble() }()
		assert.True(t, <-within)
	})
	assert.False(t, InBubble())
}

type transport struct {
	http.RoundTripper
	clients []any
}

func (t *transport) MadeClient(client any) { t.clients = append(t.clients, client) }

type wrapped struct{ http.RoundTripper }

func (w wrapped) WrappedRoundTripper() http.RoundTripper { return w.RoundTripper }

func TestAWitnessIsFoundBeneathWrappers(t *testing.T) {
	witness := &transport{RoundTripper: http.DefaultTransport}
	TellWitness(wrapped{wrapped{witness}}, 1)
	TellWitness(witness, 2)
	assert.Equal(t, []any{1, 2}, witness.clients)
	TellWitness(struct{ http.RoundTripper }{witness}, 3)
	TellWitness(wrapped{}, 4)
	TellWitness(nil, 5)
	assert.Len(t, witness.clients, 2, "nobody finds a witness beneath a transport that shows nothing")
}
