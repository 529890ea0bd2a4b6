package campaign

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"time"

	"github.com/kates-go/kates/bench/internal/consumer"
	"github.com/kates-go/kates/bench/internal/derived"
	"github.com/kates-go/kates/bench/internal/gateway"
	"github.com/kates-go/kates/bench/internal/operator"
)

// KubeconfigEnv is the environment variable with the kubeconfig file for a consumer's process.
const KubeconfigEnv = "BENCH_KUBECONFIG"

// process is a consumer, an operator or a gateway in a process of its own.
type process struct {
	name    string
	command *exec.Cmd
	in      io.WriteCloser
	write   *json.Encoder
	read    *json.Decoder
}

// start starts this program as a consumer, which then waits for commands.
func start(ctx context.Context, v consumer.Variant, kubeconfig string, env ...string) (*process, error) {
	return startAs(ctx, "consume", v.Name, kubeconfig, append(slices.Clone(v.Env), env...)...)
}

// startAs starts this program with a subcommand and a name.
func startAs(ctx context.Context, command, name, kubeconfig string, env ...string) (*process, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("start %s: %w", name, err)
	}
	return startProgram(ctx, name, self, append([]string{KubeconfigEnv + "=" + kubeconfig}, env...), command, name)
}

// startProgram starts a program, which then waits for commands. The name is for errors.
func startProgram(ctx context.Context, name, path string, env []string, args ...string) (*process, error) {
	c := exec.CommandContext(ctx, path, args...)
	c.Env = append(os.Environ(), env...)
	c.Stderr = os.Stderr
	c.WaitDelay = 10 * time.Second
	in, err := c.StdinPipe()
	if err != nil {
		return nil, fmt.Errorf("start %s: %w", name, err)
	}
	out, err := c.StdoutPipe()
	if err != nil {
		return nil, fmt.Errorf("start %s: %w", name, err)
	}
	if err := c.Start(); err != nil {
		return nil, fmt.Errorf("start %s: %w", name, err)
	}
	return &process{name: name, command: c, in: in, write: json.NewEncoder(in), read: json.NewDecoder(out)}, nil
}

// ask sends a command and waits for its answer.
func (p *process) ask(c consumer.Command) (consumer.Answer, error) {
	if err := p.send(string(c.Do), c); err != nil {
		return consumer.Answer{}, err
	}
	return p.answer()
}

// answer waits for an answer.
func (p *process) answer() (consumer.Answer, error) {
	var a consumer.Answer
	err := p.receive(&a, &a.Error)
	return a, err
}

// askOperator is ask for an operator.
func (p *process) askOperator(c operator.Command) (operator.Answer, error) {
	var a operator.Answer
	err := p.send(string(c.Do), c)
	if err == nil {
		err = p.receive(&a, &a.Error)
	}
	return a, err
}

// askGateway is ask for a gateway.
func (p *process) askGateway(c gateway.Command) (gateway.Answer, error) {
	var a gateway.Answer
	err := p.send(string(c.Do), c)
	if err == nil {
		err = p.receive(&a, &a.Error)
	}
	return a, err
}

// askDerived is ask for a contender.
func (p *process) askDerived(c derived.Command) (derived.Answer, error) {
	var a derived.Answer
	err := p.send(string(c.Do), c)
	if err == nil {
		err = p.receive(&a, &a.Error)
	}
	return a, err
}

func (p *process) send(what string, command any) error {
	if err := p.write.Encode(command); err != nil {
		return fmt.Errorf("ask %s for %s: %w", p.name, what, err)
	}
	return nil
}

// receive reads an answer. An error in the answer is its error.
func (p *process) receive(answer any, wrong *string) error {
	if err := p.read.Decode(answer); err != nil {
		return fmt.Errorf("%s ended without an answer: %w", p.name, err)
	}
	if *wrong != "" {
		return fmt.Errorf("%s: %s", p.name, *wrong)
	}
	return nil
}

// stop ends the process by closing its input.
func (p *process) stop() error {
	err := p.in.Close()
	timer := time.AfterFunc(20*time.Second, func() { _ = p.command.Process.Kill() })
	defer timer.Stop()
	if err := errors.Join(err, p.command.Wait()); err != nil {
		return fmt.Errorf("stop %s: %w", p.name, err)
	}
	return nil
}
