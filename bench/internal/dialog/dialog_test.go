package dialog

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

type reply struct {
	Outcome
	Half int `json:"half,omitempty"`
}

func half(n int) (reply, error) {
	if n%2 != 0 {
		return reply{Half: -1}, errors.New("it is odd")
	}
	return reply{Half: n / 2}, nil
}

func TestEachCommandHasAnAnswerOrItsErrorWithoutAResult(t *testing.T) {
	var out bytes.Buffer
	require.NoError(t, Serve(strings.NewReader("4\n3\n6\n"), &out, half))
	answers := json.NewDecoder(&out)
	for _, want := range []int{2, 0, 3} {
		a, err := Receive[reply](answers)
		require.Equal(t, want, a.Half)
		require.Equal(t, want == 0, err != nil)
		require.True(t, err == nil || err.Error() == "it is odd", "%v", err)
	}
	_, err := Receive[reply](answers)
	require.ErrorIs(t, err, io.EOF)
}

func TestACommandThatCannotBeReadEndsTheDialog(t *testing.T) {
	require.ErrorContains(t, Serve(strings.NewReader(`"four"`), io.Discard, half), "read a command")
}
