package campaign

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/kates-go/kates/bench/internal/gateway"
	"github.com/kates-go/kates/bench/internal/workload"
)

func TestAChangeIsInEffectWhenItOrALaterOneIsSeen(t *testing.T) {
	at := func(ms int64) time.Time { return time.UnixMilli(ms) }
	made := []workload.WebChange{
		{Key: "a", Mark: 1, At: at(100)}, {Key: "a", Mark: 2, At: at(110)}, {Key: "a", Mark: 5, At: at(200)},
		{Key: "a", Ingress: true, Mark: 3, At: at(100)}, {Key: "b", Mark: 4, At: at(100)},
	}
	seen := []gateway.Seen{
		{Key: "a", Mark: 2, UnixNano: 150e6}, {Key: "a", Mark: 5, UnixNano: 190e6}, {Key: "a", Ingress: true, Mark: 3, UnixNano: 1100e6},
	}
	endpoints, ingresses, missing := delays(made, seen)
	assert.Equal(t, []float64{50, 40, 0}, endpoints)
	assert.Equal(t, []float64{1000}, ingresses)
	assert.Equal(t, made[4:], missing)
}
