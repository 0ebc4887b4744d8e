#compdef primusctl primus-submit
# SPDX-License-Identifier: Apache-2.0
# zsh completion for primusctl and primus-submit. As that of bash: commands, options and what they are for come from the
# program itself (--words-help), what jobs, nodes and savepoints there are from masterd.

__primusctl_jobs() {
        primusctl $host list --json "$@" 2>/dev/null | sed -n 's/^ *"job": \([0-9]*\),$/\1/p'
}

__primusctl_roles() {
        primusctl $host status --json "$@" 2>/dev/null | sed -n '/^  "roles": \[/,/^  \]/s/^ *"name": "\([^"]*\)",$/\1/p'
}

__primusctl_named() {
        primusctl $host "$@" --json 2>/dev/null | sed -n 's/^ *"name": "\([^"]*\)",$/\1/p'
}

__primusctl_checkpoints() {
        primusctl "${host[@]}" checkpoints list --json 2>/dev/null | sed -n 's/^ *"checkpoint": \([0-9]*\),$/\1/p'
}

__primusctl_tasks() {
        primusctl $host data --json "$@" 2>/dev/null | sed -n 's/^ *"task": "\([^"]*\)",$/\1/p'
}

# __primusctl_offer WHAT WORD...: in the order in which they come: the newest job is the first.
__primusctl_offer() {
        local what=$1
        shift
        (( $# )) && compadd -V "$what" -- "$@"
}

# __primusctl_described WHAT [COMMAND]: of lines "WORD<tab>HELP" those that PATTERN lets through.
__primusctl_described() {
        local what=$1 pattern=$2 line word
        local -a plain equals
        integer ret=1
        shift 2
        for line in ${(f)"$(primusctl --words-help "$@" 2>/dev/null)"}; do
                word=${line%%$'\t'*}
                [[ $word == ${~pattern} ]] || continue
                if [[ $word == *= ]]; then
                        equals+=("${${word%=}//:/\\:}:${line#*$'\t'}")
                else
                        plain+=("${word//:/\\:}:${line#*$'\t'}")
                fi
        done
        if (( ${#plain} )); then
                _describe -t "$what" "$what" plain && ret=0
        fi
        # An option that wants a value is not finished.
        if (( ${#equals} )); then
                _describe -t "$what" "$what" equals -S = && ret=0
        fi
        return ret
}

_primusctl() {
        local command= current=${words[CURRENT]} before=${words[CURRENT-1]} word
        local -a host args
        integer i

        if [[ ${words[1]:t} == primus-submit ]]; then
                case $before in
                --primus_conf) _files ;;
                --wait_app_completion) __primusctl_offer value true false ;;
                --command) __primusctl_offer value submit ;;
                *) __primusctl_offer option --primus_conf --wait_app_completion --command --help --version --host --json --color ;;
                esac
                return
        fi
        for ((i = 2; i < CURRENT; i++)); do
                word=${words[i]}
                case $word in
                -H | --host) host=(-H "${words[++i]}") ;;
                --host=*) host=(-H "${word#*=}") ;;
                --)
                        [[ $command == run ]] || continue
                        # What follows is somebody else's command line.
                        shift i words
                        ((CURRENT -= i))
                        _normal
                        return
                        ;;
                -*) ;;
                *) if [[ -z $command ]]; then command=$word; else args+=("$word"); fi ;;
                esac
        done

        # "--option=value": the value is what is to be completed.
        if [[ $current == --*=* ]]; then
                before=${current%%=*}
                compset -P '*='
        fi
        case $before in
        --color) __primusctl_offer value auto always never; return ;;
        --visible) __primusctl_offer value owner group pool all; return ;;
        --state)
                if [[ $command == data ]]; then
                        __primusctl_offer state PENDING LEASED FAILED
                else
                        __primusctl_offer state SUBMITTED QUEUED STARTING RUNNING SUSPENDED STOPPING SUCCEEDED FAILED KILLED
                fi
                return
                ;;
        --hosts) __primusctl_offer node $(__primusctl_named nodes); return ;;
        --replace) [[ $command == token ]] && __primusctl_offer node $(__primusctl_named nodes); return ;;
        -a | --attach)
                if [[ $command == notebook || $command == tensorboard ]]; then
                        __primusctl_offer job $(__primusctl_jobs)
                        return
                fi
                ;;
        --token-file | --secret | --key | --tensorboard | --dir | --logdir) _files; return ;;
        -H | --host) _hosts; return ;;
        esac

        if [[ -z $command ]]; then
                if [[ $current == -* ]]; then
                        __primusctl_described option '-*'
                else
                        __primusctl_described command '[^-]*'
                fi
                return
        fi
        if [[ $current == -* ]]; then
                __primusctl_described option '-*' "$command"
                return
        fi
        case $command in
        submit | validate | restore | backup) _files ;;
        config)
                __primusctl_offer job $(__primusctl_jobs -a)
                _files
                ;;
        status | events | get | why | rerun) ((${#args} == 0)) && __primusctl_offer job $(__primusctl_jobs -a) ;;
        wait | kill | succeed | delete | suspend | resume | requeue) __primusctl_offer job $(__primusctl_jobs) ;;
        banner | login) ;; # words of one's own
        update) ((${#args} == 0)) && __primusctl_offer job $(__primusctl_jobs) ;;
        role)
                case ${#args}:${args[1]} in
                0:*) __primusctl_offer action add remove ;;
                1:*) __primusctl_offer job $(__primusctl_jobs) ;;
                2:add) _files ;;
                2:remove) __primusctl_offer role $(__primusctl_roles "${args[2]}") ;;
                esac
                ;;
        scale)
                if ((${#args} == 0)); then
                        __primusctl_offer job $(__primusctl_jobs)
                else
                        compadd -S = -- $(__primusctl_roles "${args[1]}")
                fi
                ;;
        stacks | trace | top | restart | actors)
                if ((${#args} == 0)); then
                        __primusctl_offer job $(__primusctl_jobs)
                else
                        __primusctl_offer role $(__primusctl_roles "${args[1]}")
                fi
                ;;
        exec | shell | forward) ((${#args} == 0)) && __primusctl_offer job $(__primusctl_jobs) ;;
        data)
                case ${#args}:${args[1]} in
                0:*) __primusctl_offer job $(__primusctl_jobs -a) retry skip add replace pause resume end remove weight ;;
                1:retry | 1:skip | 1:add | 1:replace | 1:pause | 1:resume | 1:end | 1:remove | 1:weight) __primusctl_offer job $(__primusctl_jobs) ;;
                2:add | 2:replace) _files ;;
                *:retry) __primusctl_offer task $(__primusctl_tasks --failed "${args[2]}") ;;
                *:skip) __primusctl_offer task $(__primusctl_tasks "${args[2]}") ;;
                esac
                ;;
        metrics | tensorboard) __primusctl_offer job $(__primusctl_jobs -a) ;;
        search)
                case ${#args}:${args[1]} in
                0:*) __primusctl_offer action show preview continue replay submit fork why kill ;;
                1:show | 1:continue | 1:replay | 1:fork | 1:why | 1:kill) __primusctl_offer job $(__primusctl_jobs -a) ;;
                1:preview | 1:submit) _files ;;
                esac
                ;;
        checkpoints)
                case ${#args}:${args[1]} in
                0:*) __primusctl_offer action list gc pin unpin forget ;;
                1:list | 1:gc) __primusctl_offer job $(__primusctl_jobs -a) ;;
                *:pin | *:unpin | *:forget) __primusctl_offer checkpoint $(__primusctl_checkpoints) ;;
                esac
                ;;
        model)
                case ${#args}:${args[1]} in
                0:*) __primusctl_offer action list register edit archive unarchive ;;
                2:register) __primusctl_offer checkpoint $(__primusctl_checkpoints) ;;
                1:*) __primusctl_offer model $(__primusctl_named model list) ;;
                esac
                ;;
        provider)
                case ${#args}:${args[1]} in
                0:*) __primusctl_offer action list hosts plan up down hold release ;;
                1:up) __primusctl_offer provider $(__primusctl_named provider list) ;;
                1:down) __primusctl_offer node $(__primusctl_named nodes) ;;
                1:hold | 1:release) __primusctl_offer provider $(__primusctl_named provider list) $(__primusctl_named nodes) ;;
                esac
                ;;
        savepoint)
                case ${#args}:${args[1]} in
                0:*) __primusctl_offer action create list show restore delete ;;
                1:create) __primusctl_offer job $(__primusctl_jobs) ;;
                1:show | 1:restore | *:delete) __primusctl_offer savepoint $(__primusctl_named savepoint list) ;;
                2:restore) _files ;;
                esac
                ;;
        logs)
                if ((${#args} == 0)); then
                        __primusctl_offer job $(__primusctl_jobs -a) $(__primusctl_roles)
                elif [[ ${#args} -eq 1 && ${args[1]} == [0-9]* ]]; then
                        __primusctl_offer role $(__primusctl_roles "${args[1]}")
                fi
                ;;
        node)
                case ${#args}:${args[1]} in
                0:*) __primusctl_offer action show events cordon uncordon drain disable enable label maintenance declare-dead remove ;;
                2:maintenance) __primusctl_offer action cancel ;;
                1:* | *:cordon | *:uncordon | *:drain) __primusctl_offer node $(__primusctl_named nodes) ;;
                esac
                ;;
        replace)
                case ${#args} in
                0) __primusctl_offer job $(__primusctl_jobs) ;;
                1) __primusctl_offer node $(__primusctl_named nodes) ;;
                esac
                ;;
        token)
                case ${#args}:${args[1]} in
                0:*) __primusctl_offer action create list revoke ;;
                1:revoke) __primusctl_offer token $(primusctl $host token list --json 2>/dev/null | sed -n 's/^ *"token": "\([^"]*\)",$/\1/p') ;;
                esac
                ;;
        join | doctor) ((${#args} == 0)) && _hosts ;;
        help) __primusctl_described command '[^-]*' ;;
        run)
                shift 1 words
                ((CURRENT--))
                if ((${#args} == 0)); then
                        _command_names -e
                else
                        _files
                fi
                ;;
        esac
}

_primusctl "$@"
