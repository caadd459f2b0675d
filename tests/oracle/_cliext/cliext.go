// Package cliext stands for the part of Temporal's command line tool that its module, as the proxy has it, does not contain: types of flags,
// the options of all commands, and how a client is made of them. It is our own, and has as much as `./dev oracle cli` needs: an
// address, a namespace, an identity, the form of the output.
package cliext

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/pflag"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/contrib/envconfig"
	"go.temporal.io/sdk/converter"
)

// FlagDuration is a span of time; days may be written as "d".
type FlagDuration time.Duration

func ParseFlagDuration(text string) (time.Duration, error) {
	if days, found := strings.CutSuffix(text, "d"); found {
		if number, err := strconv.ParseFloat(days, 64); err == nil {
			return time.Duration(number * 24 * float64(time.Hour)), nil
		}
	}
	return time.ParseDuration(text)
}

func MustParseFlagDuration(text string) FlagDuration {
	span, err := ParseFlagDuration(text)
	if err != nil {
		panic(err)
	}
	return FlagDuration(span)
}

func (d FlagDuration) Duration() time.Duration { return time.Duration(d) }
func (d *FlagDuration) String() string         { return time.Duration(*d).String() }
func (d *FlagDuration) Type() string           { return "duration" }
func (d *FlagDuration) Set(text string) error {
	span, err := ParseFlagDuration(text)
	*d = FlagDuration(span)
	return err
}

// FlagTimestamp is a point in time.
type FlagTimestamp time.Time

func (t FlagTimestamp) Time() time.Time { return time.Time(t) }
func (t *FlagTimestamp) Type() string   { return "timestamp" }
func (t *FlagTimestamp) String() string {
	if time.Time(*t).IsZero() {
		return ""
	}
	return time.Time(*t).Format(time.RFC3339)
}
func (t *FlagTimestamp) Set(text string) error {
	at, err := time.Parse(time.RFC3339, text)
	*t = FlagTimestamp(at)
	return err
}

// FlagStringEnum is one of some words, whatever their case.
type FlagStringEnum struct {
	Allowed            []string
	Value              string
	ChangedFromDefault bool
}

func NewFlagStringEnum(allowed []string, value string) FlagStringEnum {
	return FlagStringEnum{Allowed: allowed, Value: value}
}

func oneOf(allowed []string, text string) (string, error) {
	for _, word := range allowed {
		if strings.EqualFold(word, text) {
			return word, nil
		}
	}
	return "", fmt.Errorf("%s is not one of required values of %s", text, strings.Join(allowed, ", "))
}

func (e *FlagStringEnum) String() string { return e.Value }
func (e *FlagStringEnum) Type() string   { return "string" }
func (e *FlagStringEnum) Set(text string) (err error) {
	e.ChangedFromDefault = true
	e.Value, err = oneOf(e.Allowed, text)
	return err
}

// FlagStringEnumArray is several of them.
type FlagStringEnumArray struct {
	Allowed []string
	Values  []string
}

func NewFlagStringEnumArray(allowed, values []string) FlagStringEnumArray {
	return FlagStringEnumArray{Allowed: allowed, Values: values}
}

func (e *FlagStringEnumArray) String() string { return "[" + strings.Join(e.Values, ",") + "]" }
func (e *FlagStringEnumArray) Type() string   { return "string[]" }
func (e *FlagStringEnumArray) Set(text string) error {
	for _, word := range strings.Split(text, ",") {
		value, err := oneOf(e.Allowed, word)
		if err != nil {
			return err
		}
		e.Values = append(e.Values, value)
	}
	return nil
}

// CommonOptions are those of every command.
type CommonOptions struct {
	Env, EnvFile, ConfigFile, Profile   string
	DisableConfigFile, DisableConfigEnv bool
	LogLevel, LogFormat                 FlagStringEnum
	Output, TimeFormat, Color           FlagStringEnum
	NoJsonShorthandPayloads             bool
	CommandTimeout                      FlagDuration
	ClientConnectTimeout                FlagDuration
}

func (o *CommonOptions) Description() string { return "" }

func (o *CommonOptions) BuildFlags(f *pflag.FlagSet) {
	o.LogLevel = NewFlagStringEnum([]string{"debug", "info", "warn", "error", "never"}, "never")
	o.LogFormat = NewFlagStringEnum([]string{"text", "json", "pretty"}, "text")
	o.Output = NewFlagStringEnum([]string{"text", "json", "jsonl", "none"}, "text")
	o.TimeFormat = NewFlagStringEnum([]string{"relative", "iso", "raw"}, "relative")
	o.Color = NewFlagStringEnum([]string{"always", "never", "auto"}, "auto")
	f.StringVar(&o.Env, "env", "default", "")
	f.StringVar(&o.EnvFile, "env-file", "", "")
	f.StringVar(&o.ConfigFile, "config-file", "", "")
	f.StringVar(&o.Profile, "profile", "", "")
	f.BoolVar(&o.DisableConfigFile, "disable-config-file", true, "")
	f.BoolVar(&o.DisableConfigEnv, "disable-config-env", true, "")
	f.Var(&o.LogLevel, "log-level", "")
	f.Var(&o.LogFormat, "log-format", "")
	f.VarP(&o.Output, "output", "o", "")
	f.Var(&o.TimeFormat, "time-format", "")
	f.Var(&o.Color, "color", "")
	f.BoolVar(&o.NoJsonShorthandPayloads, "no-json-shorthand-payloads", false, "")
	f.Var(&o.CommandTimeout, "command-timeout", "")
	f.Var(&o.ClientConnectTimeout, "client-connect-timeout", "")
}

// ClientOptions are those of a command that asks a server.
type ClientOptions struct {
	Address, Namespace, Identity string
}

func (o *ClientOptions) Description() string { return "" }

func (o *ClientOptions) BuildFlags(f *pflag.FlagSet) {
	f.StringVar(&o.Address, "address", "localhost:7233", "")
	f.StringVarP(&o.Namespace, "namespace", "n", "default", "")
	f.StringVar(&o.Identity, "identity", "", "")
}

// HideFlags leaves them out of the help of a command, which is not compared.
func (o *ClientOptions) HideFlags() {}

// ClientOptionsBuilder makes the options of the SDK's client.
type ClientOptionsBuilder struct {
	CommonOptions CommonOptions
	ClientOptions ClientOptions
	EnvLookup     envconfig.EnvLookup
	Logger        *slog.Logger
	PayloadCodec  converter.PayloadCodec
}

func (b *ClientOptionsBuilder) Build(context.Context) (client.Options, error) {
	return client.Options{
		HostPort:  b.ClientOptions.Address,
		Namespace: b.ClientOptions.Namespace,
		Identity:  b.ClientOptions.Identity,
		Logger:    b.Logger,
	}, nil
}

// NewLogger makes a logger that says nothing, unless it was asked to.
func NewLogger(options CommonOptions, to io.Writer) (*slog.Logger, error) {
	if options.LogLevel.Value == "never" {
		return slog.New(slog.NewTextHandler(io.Discard, nil)), nil
	}
	var level slog.Level
	if err := level.UnmarshalText([]byte(options.LogLevel.Value)); err != nil {
		return nil, err
	}
	return slog.New(slog.NewTextHandler(to, &slog.HandlerOptions{Level: level})), nil
}
