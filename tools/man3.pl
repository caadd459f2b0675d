#!/usr/bin/perl
# Manual pages of section 3 from the public headers: man3.pl <version> <folder to write into> <header>...
#
# A header is one page, holdfast_chan(3), with its comments and declarations in their order; each function has a page that is a link to it. A
# function with options is shown as it is called in C: hf_chan_new for hf_chan_new_with, which has a link, too.
use strict;
use warnings;

my ($version, $out, @headers) = @ARGV;
die "usage: man3.pl <version> <folder> <header>...\n" unless @headers;

sub escape
{
    my ($text) = @_;
    $text =~ s/\\/\\e/g;
    $text =~ s/-/\\-/g;
    $text =~ s/^([.'])/\\&$1/mg;
    return $text;
}

# A comment's text: paragraphs are filled, lines that are indented or belong to a table stay as they are.
sub prose
{
    my ($comment) = @_;
    $comment =~ s/^\s*\/\*\s?//;
    $comment =~ s/\s*\*\/\s*$//;
    $comment =~ s/^\s*\*(?: |$)//mg;
    my ($text, $in_code, $fresh) = ('', 0, 1);
    for my $line (split /\n/, $comment) {
        my $code = $line =~ /^\s{2,}/ ? 1 : 0;
        if ($line =~ /^-{4} (.*?) -+$/) { $text .= ".SS $1\n"; next } # a heading
        if ($line !~ /\S/) { $text .= $in_code ? "\n" : '' ; $fresh = 1; next }
        if ($code != $in_code) {
            $text .= $code ? ".PP\n.nf\n" : ".fi\n.PP\n";
            $in_code = $code;
        }
        elsif ($fresh && !$code && $text ne '') { $text .= ".PP\n" }
        $line =~ s/^\s+// unless $code;
        $text .= escape($line) . "\n";
        $fresh = 0;
    }
    $text .= ".fi\n" if $in_code;
    $text =~ s/\n+\.fi/\n.fi/g;
    return $text;
}

sub put
{
    my ($name, $text) = @_;
    open my $file, '>', "$out/$name" or die "man3: cannot write $out/$name: $!\n";
    print $file $text;
    close $file or die "man3: cannot write $out/$name: $!\n";
}

# A declaration as readers need it, and the functions in it.
sub shown
{
    my ($code, $names) = @_;
    $code =~ s/\b(HF_API|HF_MUST_USE)\s+//g;
    if ($code =~ /^(?!typedef)[^({=]*?\b(hf_\w+)\s*\(/) {
        my $name = $1;
        push @$names, $name;
        my ($options) = $code =~ /const (hf_\w+_options) \*options\)/;
        if ($name =~ /^(\w+)_with$/ && defined $options) {
            my $verb = $1;
            push @$names, $verb;
            $code =~ s/\b\Q$name\E\b/$verb/;
            $code =~ s/\s*const \Q$options\E \*options\)/ .OPTION = VALUE, ...)/;
            $code .= " /* options: $options */";
            $code =~ s/\n\s+/ /g;
        }
        $code =~ s/\s*\{.*\}\s*$/;/s; # the body of an inline function
    }
    return $code;
}

my @pages = map { /(\w+)\.h$/ && $1 ne 'holdfast' ? "holdfast_$1" : () } @headers;
for my $path (@headers) {
    my ($noun) = $path =~ /(\w+)\.h$/ or die "man3: $path is not a header\n";
    my $page = $noun eq 'holdfast' ? 'holdfast' : "holdfast_$noun";
    open my $file, '<', $path or die "man3: cannot read $path: $!\n";
    local $/ = undef;
    my $text = <$file>;
    close $file;
    $text =~ s/\n\/\* Twins, made from.*//s;
    $text =~ s/\n#ifdef __cplusplus\n.*?\n#endif\n/\n/gs;
    my ($head) = $text =~ /^(\/\*.*?\*\/)/s or die "man3: $path has no comment at its top\n";
    $text =~ s/^\Q$head\E//;
    my ($what) = prose($head) =~ /^(?:(?:\w+|Inside an? \w+): )?(.*?)(?:\.(?:\s|$)|:\s|\n\.)/s;
    $what =~ s/\s+/ /g;

    my ($names, $body) = ([], '');
    pos($text) = 0;
    my $comment = '';
    my $flush = sub { $body .= prose($comment) . ".PP\n" if $comment ne ''; $comment = '' };
    while (pos($text) < length $text) {
        if ($text =~ /\G\s+/gc) { next }
        if ($text =~ /\G\/\*.*?\*\//gcs) {
            my $found = $&;
            $flush->();
            if ($found =~ /^\/\* -{4} (.*?) -+ \*\/$/) { $body .= ".SS $1\n" } # a heading
            elsif ($found !~ /clang-format/) { $comment = $found }
        }
        elsif ($text =~ /\G#(?:[^\n\\]|\\\n|\\.)*/gc) { # a macro: its value if it is a number or the like, else how it is called
            my $line = $&;
            $line =~ s/\s*\\\n.*//s;
            next unless $line =~ /^#define (HF_[A-Z0-9_]*[A-Z0-9])(\([^)]*\)|\s+\S.*)/;
            my ($name, $rest) = ($1, $2);
            $body .= ".nf\n\\fB" . escape($rest =~ /^\(/ ? "$name$rest" : $line) . "\\fR\n.fi\n.PP\n";
            $body .= ".RS 4\n" . prose($comment) . ".RE\n.PP\n" if $comment ne '';
            $comment = '';
        }
        elsif ($text =~ /\GHF_(?:BEGIN|END)_DECLS\b|\GHF_AUTO_DEFINE\w*\([^)]*\)/gc) { }
        elsif ($text =~ /\G(?:[^;{]|\{(?:[^{}]|\{(?:[^{}]|\{[^{}]*\})*\})*\}(?=[^;]*;))*?(?:;|\{(?:[^{}]|\{(?:[^{}]|\{[^{}]*\})*\})*\}(?!\s*\w+\s*;)|\z)/gc && length $&) {
            my $code = $&;
            my $behind = $text =~ /\G[ \t]*(\/\*.*?\*\/)/gcs ? " $1" : '';
            my $known = @$names;
            my $as = shown($code, $names);
            next if $as =~ /^\s*_Static_assert/ || ($as =~ /\b\w+_\s*\(/ && @$names == $known);
            $body .= ".nf\n\\fB" . join("\\fR\n\\fB", split /\n/, escape($as . $behind)) . "\\fR\n.fi\n";
            # What follows a comment without a blank line belongs to it as well.
            $body .= ".PP\n" unless $text =~ /\G\n(?=HF_API)/;
            if ($comment ne '' && $text !~ /\G\n(?=HF_API)/) { $body .= ".RS 4\n" . prose($comment) . ".RE\n.PP\n"; $comment = '' }
        }
        else { die "man3: $path: cannot read on at: " . substr($text, pos($text), 60) . "\n" }
    }
    $flush->();
    my %seen;
    my @all = grep { !$seen{$_}++ } @$names;
    $body =~ s/\n{2,}/\n/g unless $body =~ /\.nf/;
    $body =~ s/\.PP\n(?=\.PP|\.RE|\.SH|$)//g;
    put("$page.3", ".\\\" made from include/holdfast/$noun.h\n.TH \U$page\E 3 \"\" \"Holdfast $version\" \"Holdfast\"\n.SH NAME\n"
            . join(', ', @all ? @all : $page) . " \\- $what\n.SH SYNOPSIS\n.nf\n\\fB#include <holdfast/$noun.h>\\fR\n\n"
            . "\\fBcc program.c \$(pkg\\-config \\-\\-cflags \\-\\-libs holdfast)\\fR\n.fi\n.SH DESCRIPTION\n" . prose($head)
            . ($body =~ /\S/ ? ".SH DECLARATIONS\n$body" : '') . ".SH SEE ALSO\n.BR holdfast (1)"
            . join('', map { ",\n.BR $_ (3)" } $noun eq 'holdfast' ? @pages : 'holdfast') . "\n");
    put("$_.3", ".so man3/$page.3\n") for @all;
}
